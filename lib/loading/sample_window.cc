#include "lib/loading/sample_window.h"

#include <algorithm>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

int64_t CountLabels(std::span<const SampleSpan> spans, std::span<const uint8_t> predicted) {
  int64_t labels = 0;
  for (const SampleSpan& span : spans) {
    if (span.tokens == 0) continue;
    const auto followers = static_cast<int64_t>(span.tokens) - 1;
    if (predicted.empty()) {
      labels += followers;
    } else {
      const auto own = predicted.subspan(span.begin, span.tokens);
      labels += std::count(own.begin() + 1, own.end(), uint8_t{1});
    }
    labels += span.next_token == kNoId ? 0 : 1;
  }
  return labels;
}

void Sample::AppendTo(PackedBatch* batch) const {
  for (const SampleSpan& span : spans()) {
    const std::span<const uint8_t> predicted =
        window_->predicted.empty() ? std::span<const uint8_t>()
                                   : std::span(window_->predicted).subspan(span.begin, span.tokens);
    if (window_->tokens.narrow()) {
      batch->AppendSpan(window_->tokens.ids_16().subspan(span.begin, span.tokens), span.next_token,
                        predicted);
    } else {
      batch->AppendSpan(window_->tokens.ids_32().subspan(span.begin, span.tokens), span.next_token,
                        predicted);
    }
    batch->source_bytes += span.source_bytes;
    batch->documents += span.starts_document ? 1 : 0;
  }
}

}  // namespace trainwright
