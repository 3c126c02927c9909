#include "lib/data/packed_batch.h"

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

void PackedBatch::AppendSpan(const uint32_t* span_tokens, size_t count, uint32_t next_token) {
  if (span_starts.empty()) span_starts.push_back(0);
  if (count == 0) return;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t label = i + 1 < count ? span_tokens[i + 1] : next_token;
    tokens.push_back(span_tokens[i]);
    positions.push_back(static_cast<int64_t>(i));
    labels.push_back(label == kNoId ? kIgnoreLabel : static_cast<int64_t>(label));
    if (label != kNoId) ++num_labels;
  }
  span_starts.push_back(static_cast<int32_t>(tokens.size()));
}

}  // namespace trainwright
