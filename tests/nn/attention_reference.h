/// Packed attention by its formula, one span and one query head at a time, in double on the CPU: the oracle
/// of attention on every device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/nn/position/rope.h"

namespace trainwright::test {

/// The masks that attention takes.
inline constexpr AttentionMask kMasks[] = {AttentionMask::kCausal, AttentionMask::kBidirectional};
inline const char* MaskName(AttentionMask mask) {
  return mask == AttentionMask::kCausal ? "causal" : "bidirectional";
}

/// Calls function(rows, head, key, value) for each query head of each span. `rows(tensor, column)` is the
/// span's part of the head-wide column of a packed tensor; `key` and `value` are columns of qkv.
template <typename Function>
void ForSpanHeads(const AttentionShape& shape, const std::vector<int32_t>& spans, const Function& function) {
  const int64_t repeats = shape.num_heads / shape.num_kv_heads;
  for (size_t s = 0; s + 1 < spans.size(); ++s) {
    const int64_t begin = spans[s], length = spans[s + 1] - begin;
    const auto rows = [&](const at::Tensor& tensor, int64_t column) {
      return tensor.narrow(0, begin, length).narrow(1, column * shape.head_dim, shape.head_dim);
    };
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      const int64_t key = shape.num_heads + head / repeats;
      function(rows, head, key, key + shape.num_kv_heads);
    }
  }
}

/// q k^T / sqrt(K), -infinity above the diagonal if causal and, with a window W, from W places off it on.
inline at::Tensor MaskedScores(const AttentionShape& shape, const at::Tensor& q_tk, const at::Tensor& k_tk) {
  const int64_t length = q_tk.size(0);
  const at::Tensor all = at::ones({length, length}, at::kBool);
  at::Tensor unseen = shape.mask == AttentionMask::kCausal ? all.triu(1) : all.logical_not();
  if (shape.window > 0)
    unseen = unseen.logical_or(all.tril(-shape.window)).logical_or(all.triu(shape.window));
  const at::Tensor scores = q_tk.matmul(k_tk.t()).div(std::sqrt(static_cast<double>(q_tk.size(1))));
  return scores.masked_fill(unseen, -INFINITY);
}

/// softmax(scores) v, [N, H K].
inline at::Tensor Attention(const at::Tensor& qkv_input, const AttentionShape& shape,
                            const std::vector<int32_t>& spans) {
  const at::Tensor qkv = qkv_input.to(at::kDouble);
  at::Tensor out = at::zeros({shape.num_tokens, shape.num_heads * shape.head_dim}, at::kDouble);
  ForSpanHeads(shape, spans, [&](const auto& rows, int64_t head, int64_t key, int64_t value) {
    const at::Tensor weights = at::softmax(MaskedScores(shape, rows(qkv, head), rows(qkv, key)), 1);
    rows(out, head).copy_(weights.matmul(rows(qkv, value)));
  });
  return out;
}

/// logsumexp of the rows of scores, [N, H].
inline at::Tensor AttentionLse(const at::Tensor& qkv_input, const AttentionShape& shape,
                               const std::vector<int32_t>& spans) {
  const at::Tensor qkv = qkv_input.to(at::kDouble);
  at::Tensor lse = at::zeros({shape.num_tokens, shape.num_heads * shape.head_dim}, at::kDouble);
  ForSpanHeads(shape, spans, [&](const auto& rows, int64_t head, int64_t key, int64_t) {
    rows(lse, head).copy_(
        MaskedScores(shape, rows(qkv, head), rows(qkv, key)).logsumexp({1}, /*keepdim=*/true));
  });
  return lse.view({shape.num_tokens, shape.num_heads, shape.head_dim}).select(2, 0);
}

/// The gradient of sum(d_out * Attention), by the formula of the softmax's derivative.
inline at::Tensor AttentionGradient(const at::Tensor& d_out_input, const at::Tensor& qkv_input,
                                    const AttentionShape& shape, const std::vector<int32_t>& spans) {
  const at::Tensor qkv = qkv_input.to(at::kDouble), d_out = d_out_input.to(at::kDouble);
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  at::Tensor d_qkv = at::zeros_like(qkv);
  ForSpanHeads(shape, spans, [&](const auto& rows, int64_t head, int64_t key, int64_t value) {
    const at::Tensor q = rows(qkv, head), k = rows(qkv, key), d = rows(d_out, head);
    const at::Tensor weights = at::softmax(MaskedScores(shape, q, k), 1),
                     d_weights = d.matmul(rows(qkv, value).t());
    const at::Tensor d_scores = weights.mul(d_weights.sub(d_weights.mul(weights).sum(1, true))).mul(scale);
    rows(d_qkv, head).add_(d_scores.matmul(k));
    rows(d_qkv, key).add_(d_scores.t().matmul(q));
    rows(d_qkv, value).add_(weights.t().matmul(d));
  });
  return d_qkv;
}

}  // namespace trainwright::test
