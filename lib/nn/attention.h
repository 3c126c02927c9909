/// Causal self-attention inside each span of a packed batch, with grouped query heads, over all that came
/// before or over a sliding window (AttentionShape::window; Child et al. 2019, arXiv:1904.10509; Jiang et al.
/// 2023, arXiv:2310.06825). \source Dao et al. 2022, arXiv:2205.14135 (the passes of long spans, torch's
/// kernel)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/precision.h"
#include "lib/nn/rope.h"
#include "lib/nn/span_table.h"

namespace trainwright {

/// \param qkv storage type [N, (H+2G) K], rounded
/// \param spans cover the rows; on a GPU, with the starts there
/// \param out_nhk storage type [N, H K], rounded under short precisions
/// \param lse_hn fp32 [H, N]: logsumexp of the scores, for the backward pass
void PackedAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& qkv,
                     const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn);

/// \param d_out_nhk storage type, rounded \param d_qkv storage type, written whole
void PackedAttentionBackward(const Numerics& numerics, const AttentionShape& shape,
                             const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                             const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv);

/// One query row, at position `length` - 1, against cached keys and values, storage type [length, G, K].
/// \param query [H K] \param out [H K]
void DecodeAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& query,
                     const at::Tensor& keys, const at::Tensor& values, int64_t length, at::Tensor& out);

}  // namespace trainwright
