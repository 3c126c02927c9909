#include "lib/data/packed_batch.h"

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

void PackedBatch::AppendSpan(std::span<const uint32_t> span_tokens, uint32_t next_token,
                             std::span<const uint8_t> predicted) {
  if (span_starts.empty()) span_starts.push_back(0);
  const size_t count = span_tokens.size();
  if (count == 0) return;
  const auto label_after = [&](size_t i) {
    if (i + 1 == count) return next_token;
    return predicted.empty() || predicted[i + 1] != 0 ? span_tokens[i + 1] : kNoId;
  };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t label = label_after(i);
    tokens.push_back(span_tokens[i]);
    positions.push_back(static_cast<int64_t>(i));
    labels.push_back(label == kNoId ? kIgnoreLabel : static_cast<int64_t>(label));
    if (label != kNoId) ++num_labels;
  }
  span_starts.push_back(static_cast<int32_t>(tokens.size()));
}

}  // namespace trainwright
