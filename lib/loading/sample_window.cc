#include "lib/loading/sample_window.h"

#include <algorithm>
#include <utility>

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

std::vector<uint32_t> Sample::TokensOf(const SampleSpan& span, uint32_t begin) const {
  return window_->tokens.Widened(span.begin + begin, span.tokens - begin);
}

std::span<const uint8_t> Sample::PredictedOf(const SampleSpan& span) const {
  if (window_->predicted.empty()) return {};
  return std::span(window_->predicted).subspan(span.begin, span.tokens);
}

Sample Sample::With(Sample companion) const {
  Sample both = *this;
  both.companion_ = std::make_shared<const Sample>(std::move(companion));
  return both;
}

void Sample::AppendTo(PackedBatch* batch) const {
  for (const SampleSpan& span : spans()) AppendSpanTo(span, batch);
}

void Sample::AppendSpanTo(const SampleSpan& span, std::span<const uint8_t> predicted,
                          PackedBatch* batch) const {
  const TokenRun& tokens = window_->tokens;
  if (tokens.narrow()) {
    batch->AppendSpan(tokens.ids_16().subspan(span.begin, span.tokens), span.next_token, predicted);
  } else {
    batch->AppendSpan(tokens.ids_32().subspan(span.begin, span.tokens), span.next_token, predicted);
  }
  batch->source_bytes += span.source_bytes;
  batch->documents += span.starts_document ? 1 : 0;
}

SampleWindow::Entry CopySample(const SampleWindow& from, const SampleWindow::Entry& sample,
                               SampleWindow* to) {
  SampleWindow::Entry copy = sample;
  copy.span_begin = static_cast<uint32_t>(to->spans.size());
  for (uint32_t i = sample.span_begin; i < sample.span_end; ++i) {
    SampleSpan span = from.spans[i];
    const uint64_t begin = std::exchange(span.begin, to->tokens.size());
    to->tokens.Append(from.tokens.Widened(begin, span.tokens));
    if (!from.predicted.empty()) {
      const auto predicted = std::span(from.predicted).subspan(begin, span.tokens);
      to->predicted.insert(to->predicted.end(), predicted.begin(), predicted.end());
    }
    to->spans.push_back(span);
  }
  copy.span_end = static_cast<uint32_t>(to->spans.size());
  return copy;
}

}  // namespace trainwright
