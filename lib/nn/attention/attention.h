/// Self-attention inside each span of a packed batch, with grouped query heads, causal or in both directions
/// (AttentionShape::mask), whole or over a sliding window (AttentionShape::window; Child et al. 2019,
/// arXiv:1904.10509; Jiang et al. 2023, arXiv:2310.06825). \source Dao et al. 2022, arXiv:2205.14135 (the
/// passes of long spans, torch's kernel)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/attention/span_table.h"
#include "lib/nn/position/rope.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// The results are written, or become new tensors where they are undefined: on a GPU what flash and cuDNN
/// return is taken as it is where it has all rows in order, and copied elsewhere.
/// \param qkv storage type [N, (H+2G) K], rounded
/// \param spans cover the rows; on a GPU, with the starts there
/// \param out_nhk storage type [N, H K], rounded under short precisions
/// \param lse_hn fp32 [H, N]: logsumexp of the scores, for the backward pass
void PackedAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& qkv,
                     const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn);

/// \param d_out_nhk storage type, rounded
/// \param d_qkv storage type, written whole
/// \param rope by which queries and keys were turned: their gradients are turned back; null: not
void PackedAttentionBackward(const Numerics& numerics, const AttentionShape& shape,
                             const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                             const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv,
                             const RopeRows* rope = nullptr);

/// Where a row's key and value lie in a cache: its sequence, and its position there.
struct CachePlace {
  int64_t sequence = 0, position = 0;
};

/// Copies keys and values of the first rows of `qkv` to their places.
/// \param keys_bgmk, values_bgmk storage type [sequences, G, positions, K]: a head's keys lie together, as
/// decoding reads them
void FillCache(const AttentionShape& shape, const at::Tensor& qkv, const std::vector<CachePlace>& places,
               at::Tensor& keys_bgmk, at::Tensor& values_bgmk);

/// The first rows of `qkv`, each against the keys and values of its sequence up to its own place, which the
/// cache holds already: causal. Rows without a place get zeros. A row's bits do not depend on the others.
/// \param out_nhk storage type [N, H K]; undefined: becomes a new tensor
void DecodeAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& qkv,
                     const std::vector<CachePlace>& places, const at::Tensor& keys_bgmk,
                     const at::Tensor& values_bgmk, at::Tensor& out_nhk);

}  // namespace trainwright
