/// The calls of cuDNN's attention and of FlashAttention 2 through torch: the one place that knows what they
/// take and give. \source torch 2.11, aten/src/ATen/native: cudnn/MHA.cpp,
/// transformers/cuda/attention_backward.cu and transformers/cuda/flash_attn/flash_api.cpp
///
/// Both read strided views, so that heads of packed projections are taken where they lie, and have heads of
/// keys and values of their own number: a query head h of H reads those of h G / H. Torch's dispatcher finds
/// the implementation: on a GPU that of libtorch_cuda, in tests one of the host that demands the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace trainwright {

/// Query, key and value heads: of spans of one length as [B, H, T, K] and two of [B, G, T, K], or packed as
/// [N, H, K] and two of [N, G, K]. bf16 or fp16; K is a multiple of 8, all strides but the last, which is 1,
/// are multiples of 8 elements, and the first elements lie on multiples of 16 bytes.
struct AttentionHeads {
  at::Tensor q, k, v;
};

/// New tensors: of the query's shape and type, and the logsumexp of its scores in fp32.
struct AttentionResult {
  at::Tensor out, lse;
};

struct AttentionReach {
  bool causal = true;
  double scale = 1;  ///< of the scores
  /// Of FlashAttention: how many tokens before its own a token sees, and how many after; absent: all.
  std::optional<int64_t> left = {}, right = {};
};

/// cuDNN's, of spans of one length.
/// \returns lse as [B, H, T, 1]
AttentionResult DenseAttention(const AttentionHeads& heads_bhtk, const AttentionReach& reach);
/// \param d_out_bhtk, result of the shapes that DenseAttention gives, in any strides of one order
/// \returns gradients of the shapes of the heads
AttentionHeads DenseAttentionBackward(const at::Tensor& d_out_bhtk, const AttentionHeads& heads_bhtk,
                                      const AttentionResult& result, const AttentionReach& reach);

/// Where packed spans begin, and the end of the last; on the heads' device.
struct PackedSpans {
  at::Tensor starts;  ///< int32 [S+1]
  int64_t longest = 0;
};

/// FlashAttention's, of packed spans of any lengths.
/// \returns lse as [H, N]
AttentionResult PackedFlashAttention(const AttentionHeads& heads_nhk, const PackedSpans& spans,
                                     const AttentionReach& reach);
/// \param d_out_nhk, result dense; else the library copies them
/// \returns gradients of the shapes of the heads
AttentionHeads PackedFlashAttentionBackward(const at::Tensor& d_out_nhk, const AttentionHeads& heads_nhk,
                                            const AttentionResult& result, const PackedSpans& spans,
                                            const AttentionReach& reach);

/// What torch's kernels take as the state of a random generator where there is no dropout.
at::Tensor NoDropoutState(const at::Tensor& like);

}  // namespace trainwright
