#include "lib/nn/attention/fused_attention.h"

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/empty.h>

#include <tuple>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int64_t kAlignedElements = 8;  // 16 bytes of the short types

bool IsAligned(const at::Tensor& heads) {
  if (heads.stride(-1) != 1 || heads.size(-1) % kAlignedElements != 0) return false;
  if (heads.storage_offset() % kAlignedElements != 0) return false;
  for (int64_t dimension = 0; dimension + 1 < heads.dim(); ++dimension) {
    if (heads.stride(dimension) % kAlignedElements != 0) return false;
  }
  return true;
}

/// \param head_dimension that of the number of heads
void CheckHeads(const AttentionHeads& heads, int64_t dimensions, int64_t head_dimension) {
  TRAINWRIGHT_CHECK(heads.q.dim() == dimensions && heads.k.sizes() == heads.v.sizes());
  for (const at::Tensor& part : {heads.q, heads.k, heads.v}) {
    TRAINWRIGHT_CHECK(part.dim() == dimensions && IsAligned(part));
    TRAINWRIGHT_CHECK(part.scalar_type() == heads.q.scalar_type());
  }
  for (int64_t dimension = 0; dimension < dimensions; ++dimension) {
    const int64_t queries = heads.q.size(dimension), keys = heads.k.size(dimension);
    TRAINWRIGHT_CHECK(dimension == head_dimension ? queries % keys == 0 : queries == keys);
  }
}

void CheckDense(const AttentionHeads& heads) {
  CheckHeads(heads, /*dimensions=*/4, /*head_dimension=*/1);
}
void CheckPacked(const AttentionHeads& heads) {
  CheckHeads(heads, /*dimensions=*/3, /*head_dimension=*/1);
}

}  // namespace

at::Tensor NoDropoutState(const at::Tensor& like) {
  return at::empty({}, like.options().dtype(at::kLong));
}

AttentionResult DenseAttention(const AttentionHeads& heads_bhtk, const AttentionReach& reach) {
  CheckDense(heads_bhtk);
  const auto result = at::_scaled_dot_product_cudnn_attention(
      heads_bhtk.q, heads_bhtk.k, heads_bhtk.v, /*attn_bias=*/{}, /*compute_log_sumexp=*/true,
      /*dropout_p=*/0.0, reach.causal, /*return_debug_mask=*/false, reach.scale);
  return {std::get<0>(result), std::get<1>(result)};
}

AttentionHeads DenseAttentionBackward(const at::Tensor& d_out_bhtk, const AttentionHeads& heads_bhtk,
                                      const AttentionResult& result, const AttentionReach& reach) {
  CheckDense(heads_bhtk);
  TRAINWRIGHT_CHECK(d_out_bhtk.sizes() == heads_bhtk.q.sizes() &&
                    result.out.sizes() == heads_bhtk.q.sizes() &&
                    d_out_bhtk.strides() == result.out.strides());
  TRAINWRIGHT_CHECK(result.lse.dim() == 4 && result.lse.is_contiguous());
  const int64_t length = heads_bhtk.q.size(2);
  const auto gradients = at::_scaled_dot_product_cudnn_attention_backward(
      d_out_bhtk, heads_bhtk.q, heads_bhtk.k, heads_bhtk.v, result.out, result.lse,
      NoDropoutState(result.lse), NoDropoutState(result.lse), /*attn_bias=*/{}, /*cum_seq_q=*/{},
      /*cum_seq_k=*/{}, length, length,
      /*dropout_p=*/0.0, reach.causal, reach.scale);
  return {std::get<0>(gradients), std::get<1>(gradients), std::get<2>(gradients)};
}

AttentionResult PackedFlashAttention(const AttentionHeads& heads_nhk, const PackedSpans& spans,
                                     const AttentionReach& reach) {
  CheckPacked(heads_nhk);
  const auto result = at::_flash_attention_forward(
      heads_nhk.q, heads_nhk.k, heads_nhk.v, spans.starts, spans.starts, spans.longest, spans.longest,
      /*dropout_p=*/0.0, reach.causal, /*return_debug_mask=*/false, reach.scale, reach.left, reach.right);
  return {std::get<0>(result), std::get<1>(result)};
}

AttentionHeads PackedFlashAttentionBackward(const at::Tensor& d_out_nhk, const AttentionHeads& heads_nhk,
                                            const AttentionResult& result, const PackedSpans& spans,
                                            const AttentionReach& reach) {
  CheckPacked(heads_nhk);
  const auto gradients = at::_flash_attention_backward(
      d_out_nhk, heads_nhk.q, heads_nhk.k, heads_nhk.v, result.out, result.lse, spans.starts, spans.starts,
      spans.longest, spans.longest, /*dropout_p=*/0.0, reach.causal, NoDropoutState(result.lse),
      NoDropoutState(result.lse), reach.scale, reach.left, reach.right);
  return {std::get<0>(gradients), std::get<1>(gradients), std::get<2>(gradients)};
}

}  // namespace trainwright
