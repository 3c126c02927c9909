/// A micro-batch as models take it: the tokens of several sequences laid end to end, with the boundaries that
/// attention must not cross. No padding positions exist in it.
///
/// Shape legend: N tokens of the micro-batch, S spans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/loading/span_note.h"

namespace trainwright {

inline constexpr int64_t kIgnoreLabel = -100;

struct PackedBatch {
  std::vector<int64_t> tokens;     ///< [N] ids
  std::vector<int64_t> positions;  ///< [N] position inside the span, from 0
  /// [N] the next token of the same document, or kIgnoreLabel where there is none or it is not predicted
  std::vector<int64_t> labels;
  std::vector<int32_t> span_starts;  ///< [S+1] cumulative: span s is [span_starts[s], span_starts[s+1])
  int64_t num_labels = 0;            ///< labels that are not kIgnoreLabel
  uint64_t source_bytes = 0;         ///< bytes of text after the tokens
  uint64_t documents = 0;            ///< documents that start in it
  std::vector<SpanNote> notes;       ///< [S], or empty: an objective that needs none
  std::vector<UndrawnPositive> undrawn_positives;  ///< records ascending; empty without notes

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  /// Appends one span: `tokens` with labels shifted by one, `next_token` (or kNoId) the label of the last.
  /// \param predicted of each token, whether it becomes a label (1) or not (0); empty: all do
  void AppendSpan(std::span<const uint32_t> tokens, uint32_t next_token,
                  std::span<const uint8_t> predicted = {});
  void AppendSpan(std::span<const uint16_t> tokens, uint32_t next_token,
                  std::span<const uint8_t> predicted = {});
  /// Makes it empty and keeps the memory.
  void Clear();
};

}  // namespace trainwright
