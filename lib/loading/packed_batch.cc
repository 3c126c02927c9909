#include "lib/loading/packed_batch.h"

#include <algorithm>
#include <numeric>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {
namespace {

template <typename Token>
void Append(std::span<const Token> ids, uint32_t next_token, std::span<const uint8_t> predicted,
            PackedBatch* batch) {
  if (batch->span_starts.empty()) batch->span_starts.push_back(0);
  const size_t count = ids.size(), begin = batch->tokens.size();
  if (count == 0) return;
  // Loops over plain memory: the compiler widens with vector instructions.
  batch->tokens.insert(batch->tokens.end(), ids.begin(), ids.end());
  batch->positions.resize(begin + count);
  std::iota(batch->positions.begin() + static_cast<ptrdiff_t>(begin), batch->positions.end(), int64_t{0});
  batch->labels.insert(batch->labels.end(), ids.begin() + 1, ids.end());
  batch->labels.push_back(next_token == kNoId ? kIgnoreLabel : static_cast<int64_t>(next_token));
  batch->num_labels += static_cast<int64_t>(count) - (next_token == kNoId ? 1 : 0);
  for (size_t i = 1; i < predicted.size(); ++i) {
    if (predicted[i] != 0) continue;
    batch->labels[begin + i - 1] = kIgnoreLabel;
    --batch->num_labels;
  }
  batch->span_starts.push_back(static_cast<int32_t>(begin + count));
}

}  // namespace

void PackedBatch::AppendSpan(std::span<const uint32_t> span_tokens, uint32_t next_token,
                             std::span<const uint8_t> predicted) {
  Append(span_tokens, next_token, predicted, this);
}

void PackedBatch::AppendSpan(std::span<const uint16_t> span_tokens, uint32_t next_token,
                             std::span<const uint8_t> predicted) {
  Append(span_tokens, next_token, predicted, this);
}

void PackedBatch::Clear() {
  tokens.clear();
  positions.clear();
  labels.clear();
  span_starts.clear();
  num_labels = 0;
  source_bytes = 0;
  documents = 0;
  notes.clear();
  undrawn_positives.clear();
}

}  // namespace trainwright
