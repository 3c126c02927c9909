/// What attention is computed over: for host and device, torch-free.
#pragma once

#include <cstdint>

namespace trainwright {

/// What a token of a span attends to: itself and what came before it, or all of the span. A window of W
/// narrows either to the tokens less than W places away.
enum class AttentionMask { kCausal, kBidirectional };

/// Layout of packed projections: a row holds H query heads, G key heads, G value heads of K elements each.
struct AttentionShape {
  int64_t num_tokens = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int64_t window = 0;  ///< see AttentionMask; 0: none
  AttentionMask mask = AttentionMask::kCausal;
  int64_t row() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

}  // namespace trainwright
