#include "lib/nn/attention/torch_attention.h"

#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// efficient's masks: none, and a lower triangle that starts at the upper left corner.
constexpr int64_t kNoMask = 0, kCausalFromTopLeft = 1;
/// efficient pads the rows of its logsumexp to this.
constexpr int64_t kEfficientLseRows = 32;

/// The query, key and value heads of packed rows: [N, H, K] and two of [N, G, K], views.
struct Heads {
  at::Tensor q_thk, k_tgk, v_tgk;
};

Heads HeadsOf(const AttentionShape& shape, const at::Tensor& qkv) {
  const int64_t rows = qkv.size(0), size = shape.head_dim, queries = shape.num_heads * size,
                keys = shape.num_kv_heads * size;
  return {qkv.narrow(1, 0, queries).view({rows, shape.num_heads, size}),
          qkv.narrow(1, queries, keys).view({rows, shape.num_kv_heads, size}),
          qkv.narrow(1, queries + keys, keys).view({rows, shape.num_kv_heads, size})};
}

double ScaleOf(const AttentionShape& shape) {
  return 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
}

int64_t RepeatsOf(const AttentionShape& shape) {
  return shape.num_heads / shape.num_kv_heads;
}

/// [T, G, K] to [T, H, K]: a group's head once for each of its query heads.
at::Tensor Repeat(const AttentionShape& shape, const at::Tensor& heads_tgk) {
  if (RepeatsOf(shape) == 1) return heads_tgk;
  return heads_tgk.unsqueeze(2)
      .expand({heads_tgk.size(0), shape.num_kv_heads, RepeatsOf(shape), shape.head_dim})
      .reshape({heads_tgk.size(0), shape.num_heads, shape.head_dim});
}

/// Its transpose: sums the query heads of a group.
at::Tensor SumRepeats(const AttentionShape& shape, const at::Tensor& heads_thk) {
  if (RepeatsOf(shape) == 1) return heads_thk;
  return heads_thk.reshape({heads_thk.size(0), shape.num_kv_heads, RepeatsOf(shape), shape.head_dim}).sum(2);
}

/// [T, H, K] to [1, H, T, K], a view.
at::Tensor HeadsFirst(const at::Tensor& heads_thk) {
  return heads_thk.transpose(0, 1).unsqueeze(0);
}

at::Tensor HeadsLast(const at::Tensor& heads_1htk) {
  return heads_1htk.squeeze(0).transpose(0, 1);
}

/// The state of a random generator that no dropout reads.
at::Tensor NoState(const at::Tensor& like) {
  return at::empty({}, like.options().dtype(at::kLong));
}

bool IsCausal(const AttentionShape& shape) {
  return shape.mask == AttentionMask::kCausal;
}

int64_t EfficientMask(const AttentionShape& shape) {
  return IsCausal(shape) ? kCausalFromTopLeft : kNoMask;
}

/// Sets to minus infinity the scores [H, T, T] of what a token of a span does not attend to.
void MaskUnseen(const AttentionShape& shape, at::Tensor& scores) {
  const int64_t length = scores.size(1), window = shape.window == 0 ? length : shape.window;
  const at::Tensor all = at::ones({length, length}, scores.options().dtype(at::kBool));
  const at::Tensor unseen = all.triu(IsCausal(shape) ? 1 : window).logical_or_(all.tril(-window));
  scores.masked_fill_(unseen, -std::numeric_limits<double>::infinity());
}

/// The window as flash takes it: how many tokens before its own a token sees, and how many after.
std::optional<int64_t> FlashLeft(const AttentionShape& shape) {
  return shape.window == 0 ? std::nullopt : std::make_optional(shape.window - 1);
}
std::optional<int64_t> FlashRight(const AttentionShape& shape) {
  if (shape.window == 0) return std::nullopt;
  return IsCausal(shape) ? 0 : shape.window - 1;
}

/// The kernel of one span: efficient and cudnn know no window, so a span that is longer goes to math.
AttentionBackend BackendOf(AttentionBackend backend, const AttentionShape& shape, int64_t length) {
  return shape.window != 0 && length > shape.window ? AttentionBackend::kMath : backend;
}

/// One span: out [T, H, K] and lse [H, T] are written.
void ForwardMath(const AttentionShape& shape, const Heads& in, at::Tensor out_thk, at::Tensor lse_ht) {
  const at::Tensor q_htk = in.q_thk.transpose(0, 1).to(at::kFloat),
                   k_htk = Repeat(shape, in.k_tgk).transpose(0, 1).to(at::kFloat),
                   v_htk = Repeat(shape, in.v_tgk).transpose(0, 1).to(at::kFloat);
  at::Tensor scores = at::matmul(q_htk, k_htk.transpose(1, 2)).mul_(ScaleOf(shape));
  MaskUnseen(shape, scores);
  const at::Tensor lse = at::logsumexp(scores, {2}, /*keepdim=*/true);
  out_thk.copy_(at::matmul(scores.sub_(lse).exp_(), v_htk).transpose(0, 1));
  lse_ht.copy_(lse.squeeze(2));
}

struct Gradients {
  at::Tensor q_thk, k_thk, v_thk;
};

Gradients BackwardMath(const AttentionShape& shape, const Heads& in, const at::Tensor& d_out_thk,
                       const at::Tensor& out_thk, const at::Tensor& lse_ht) {
  const at::Tensor q_htk = in.q_thk.transpose(0, 1).to(at::kFloat),
                   k_htk = Repeat(shape, in.k_tgk).transpose(0, 1).to(at::kFloat),
                   v_htk = Repeat(shape, in.v_tgk).transpose(0, 1).to(at::kFloat),
                   d_out_htk = d_out_thk.transpose(0, 1).to(at::kFloat),
                   out_htk = out_thk.transpose(0, 1).to(at::kFloat);
  at::Tensor p = at::matmul(q_htk, k_htk.transpose(1, 2)).mul_(ScaleOf(shape));
  MaskUnseen(shape, p);
  p.sub_(lse_ht.unsqueeze(2)).exp_();
  const at::Tensor delta = d_out_htk.mul(out_htk).sum(2, /*keepdim=*/true);
  const at::Tensor d_v = at::matmul(p.transpose(1, 2), d_out_htk);
  const at::Tensor d_scores =
      at::matmul(d_out_htk, v_htk.transpose(1, 2)).sub_(delta).mul_(p).mul_(ScaleOf(shape));
  return {at::matmul(d_scores, k_htk).transpose(0, 1),
          at::matmul(d_scores.transpose(1, 2), q_htk).transpose(0, 1), d_v.transpose(0, 1)};
}

void ForwardEfficient(const AttentionShape& shape, const Heads& in, at::Tensor out_thk, at::Tensor lse_ht) {
  const auto result = at::_efficient_attention_forward(
      in.q_thk.unsqueeze(0), Repeat(shape, in.k_tgk).unsqueeze(0), Repeat(shape, in.v_tgk).unsqueeze(0),
      /*bias=*/{}, /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{}, /*max_seqlen_q=*/{}, /*max_seqlen_k=*/{},
      /*dropout_p=*/0.0, EfficientMask(shape), /*compute_log_sumexp=*/true, ScaleOf(shape));
  out_thk.copy_(std::get<0>(result).squeeze(0));
  lse_ht.copy_(std::get<1>(result).squeeze(0).narrow(1, 0, lse_ht.size(1)));
}

Gradients BackwardEfficient(const AttentionShape& shape, const Heads& in, const at::Tensor& d_out_thk,
                            const at::Tensor& out_thk, const at::Tensor& lse_ht) {
  const int64_t length = in.q_thk.size(0);
  const int64_t padded = (length + kEfficientLseRows - 1) / kEfficientLseRows * kEfficientLseRows;
  at::Tensor lse =
      at::full({1, shape.num_heads, padded}, std::numeric_limits<double>::infinity(), lse_ht.options());
  lse.squeeze(0).narrow(1, 0, length).copy_(lse_ht);
  const auto result = at::_efficient_attention_backward(
      d_out_thk.unsqueeze(0), in.q_thk.unsqueeze(0), Repeat(shape, in.k_tgk).unsqueeze(0),
      Repeat(shape, in.v_tgk).unsqueeze(0), /*bias=*/{}, out_thk.unsqueeze(0), /*cu_seqlens_q=*/{},
      /*cu_seqlens_k=*/{}, length, length, lse, /*dropout_p=*/0.0, NoState(lse), NoState(lse),
      EfficientMask(shape),
      /*bias_requires_grad=*/false, ScaleOf(shape));
  return {std::get<0>(result).squeeze(0), std::get<1>(result).squeeze(0), std::get<2>(result).squeeze(0)};
}

/// [H, T] as cuDNN has the statistics of a softmax: [1, H, T, 1], dense.
at::Tensor CudnnStatistics(const at::Tensor& lse_ht) {
  return lse_ht.contiguous().unsqueeze(0).unsqueeze(3);
}

void ForwardCudnn(const AttentionShape& shape, const Heads& in, at::Tensor out_thk, at::Tensor lse_ht) {
  const auto result = at::_scaled_dot_product_cudnn_attention(
      HeadsFirst(in.q_thk), HeadsFirst(Repeat(shape, in.k_tgk)), HeadsFirst(Repeat(shape, in.v_tgk)),
      /*attn_bias=*/{}, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, IsCausal(shape),
      /*return_debug_mask=*/false, ScaleOf(shape));
  out_thk.copy_(HeadsLast(std::get<0>(result)));
  lse_ht.copy_(std::get<1>(result).reshape(lse_ht.sizes()));
}

Gradients BackwardCudnn(const AttentionShape& shape, const Heads& in, const at::Tensor& d_out_thk,
                        const at::Tensor& out_thk, const at::Tensor& lse_ht) {
  const int64_t length = in.q_thk.size(0);
  const auto result = at::_scaled_dot_product_cudnn_attention_backward(
      HeadsFirst(d_out_thk), HeadsFirst(in.q_thk), HeadsFirst(Repeat(shape, in.k_tgk)),
      HeadsFirst(Repeat(shape, in.v_tgk)), HeadsFirst(out_thk), CudnnStatistics(lse_ht), NoState(lse_ht),
      NoState(lse_ht), /*attn_bias=*/{}, /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, length, length,
      /*dropout_p=*/0.0, IsCausal(shape), ScaleOf(shape));
  return {HeadsLast(std::get<0>(result)), HeadsLast(std::get<1>(result)), HeadsLast(std::get<2>(result))};
}

/// Flash pads the rows of every span, and the heads of its sums, in scratch memory.
constexpr int64_t kFlashRowPadding = 128;
int64_t FlashHeadDim(int64_t head_dim) {
  const int64_t multiple = head_dim <= 128 ? 32 : 64;
  return (head_dim + multiple - 1) / multiple * multiple;
}

}  // namespace

int64_t AttentionWorkspaceBytes(AttentionBackend backend, const AttentionShape& shape, at::ScalarType dtype,
                                const SpanTable& spans) {
  if (backend == AttentionBackend::kAuto) return 0;
  constexpr int64_t kFp32 = sizeof(float);
  const auto stored = static_cast<int64_t>(at::elementSize(dtype));
  const int64_t heads = shape.num_heads, groups = shape.num_kv_heads, size = shape.head_dim;
  if (backend == AttentionBackend::kFlash) {
    const int64_t padded_rows =
        shape.num_tokens + kFlashRowPadding * static_cast<int64_t>(spans.starts.size() - 1);
    const int64_t gradients = shape.num_tokens * (heads + 2 * groups) * size * stored;
    const int64_t of_repeats = groups == heads ? 0 : 2 * shape.num_tokens * heads * size * stored;
    const int64_t d_q_sums = padded_rows * heads * FlashHeadDim(size) * kFp32;
    return gradients + of_repeats + d_q_sums + padded_rows * heads * kFp32;
  }
  const int64_t length = spans.longest(), rows = length * heads * size;  // elements of all heads of a span
  if (BackendOf(backend, shape, length) == AttentionBackend::kMath) {
    // q, k, v, d_out, out and three gradients in fp32; the weights, their gradient and the mask.
    return 8 * rows * kFp32 + 2 * length * length * heads * kFp32 + length * length;
  }
  const int64_t repeated = groups == heads ? 0 : 2 * rows * stored;
  return repeated + 3 * rows * stored + length * heads * kFp32;
}

void TorchAttention(AttentionBackend backend, const AttentionShape& shape, const at::Tensor& qkv,
                    const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn) {
  const at::Tensor out = out_nhk.view({shape.num_tokens, shape.num_heads, shape.head_dim});
  if (backend == AttentionBackend::kFlash) {
    const Heads in = HeadsOf(shape, qkv);
    const auto result = at::_flash_attention_forward(
        in.q_thk, in.k_tgk, in.v_tgk, spans.starts_on_device, spans.starts_on_device, spans.longest(),
        spans.longest(), /*dropout_p=*/0.0, IsCausal(shape), /*return_debug_mask=*/false, ScaleOf(shape),
        FlashLeft(shape), FlashRight(shape));
    TRAINWRIGHT_CHECK(std::get<1>(result).sizes() == lse_hn.sizes());
    out.copy_(std::get<0>(result));
    lse_hn.copy_(std::get<1>(result));
    return;
  }
  for (size_t s = 0; s + 1 < spans.starts.size(); ++s) {
    const int64_t begin = spans.starts[s], length = spans.starts[s + 1] - begin;
    if (length == 0) continue;
    const Heads in = HeadsOf(shape, qkv.narrow(0, begin, length));
    const AttentionBackend of_span = BackendOf(backend, shape, length);
    const auto forward = of_span == AttentionBackend::kCudnn       ? ForwardCudnn
                         : of_span == AttentionBackend::kEfficient ? ForwardEfficient
                                                                   : ForwardMath;
    forward(shape, in, out.narrow(0, begin, length), lse_hn.narrow(1, begin, length));
  }
}

void TorchAttentionBackward(AttentionBackend backend, const AttentionShape& shape,
                            const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                            const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv) {
  const std::vector<int64_t> sizes = {shape.num_tokens, shape.num_heads, shape.head_dim};
  const at::Tensor out = out_nhk.view(sizes), d_out = d_out_nhk.view(sizes);
  if (backend == AttentionBackend::kFlash) {
    const Heads in = HeadsOf(shape, qkv), gradients = HeadsOf(shape, d_qkv);
    const auto result = at::_flash_attention_backward(
        d_out, in.q_thk, in.k_tgk, in.v_tgk, out, lse_hn, spans.starts_on_device, spans.starts_on_device,
        spans.longest(), spans.longest(), /*dropout_p=*/0.0, IsCausal(shape), NoState(qkv), NoState(qkv),
        ScaleOf(shape), FlashLeft(shape), FlashRight(shape));
    gradients.q_thk.copy_(std::get<0>(result));
    gradients.k_tgk.copy_(std::get<1>(result));
    gradients.v_tgk.copy_(std::get<2>(result));
    return;
  }
  for (size_t s = 0; s + 1 < spans.starts.size(); ++s) {
    const int64_t begin = spans.starts[s], length = spans.starts[s + 1] - begin;
    if (length == 0) continue;
    const Heads in = HeadsOf(shape, qkv.narrow(0, begin, length)),
                to = HeadsOf(shape, d_qkv.narrow(0, begin, length));
    const AttentionBackend of_span = BackendOf(backend, shape, length);
    const auto backward = of_span == AttentionBackend::kCudnn       ? BackwardCudnn
                          : of_span == AttentionBackend::kEfficient ? BackwardEfficient
                                                                    : BackwardMath;
    const Gradients gradients = backward(shape, in, d_out.narrow(0, begin, length),
                                         out.narrow(0, begin, length), lse_hn.narrow(1, begin, length));
    to.q_thk.copy_(gradients.q_thk);
    to.k_tgk.copy_(SumRepeats(shape, gradients.k_thk));
    to.v_tgk.copy_(SumRepeats(shape, gradients.v_thk));
  }
}

}  // namespace trainwright
