#include "lib/nn/attention/torch_attention.h"

#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "lib/base/error.h"
#include "lib/nn/attention/fused_attention.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

/// efficient's masks: none, and a lower triangle that starts at the upper left corner.
constexpr int64_t kNoMask = 0, kCausalFromTopLeft = 1;
/// efficient pads the rows of its logsumexp to this.
constexpr int64_t kEfficientLseRows = 32;

/// The heads of packed rows, views.
AttentionHeads HeadsOf(const AttentionShape& shape, const at::Tensor& qkv) {
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

/// [B T, H, K] to [B, H, T, K], a view.
at::Tensor Dense(const SpanTable::Run& run, const at::Tensor& rows_nhk) {
  return rows_nhk.unflatten(0, {run.spans, run.length}).transpose(1, 2);
}
AttentionHeads Dense(const SpanTable::Run& run, const AttentionHeads& rows) {
  return {Dense(run, rows.q), Dense(run, rows.k), Dense(run, rows.v)};
}

/// [H, B T] to [B, H, T, 1], a view.
at::Tensor DenseLse(const SpanTable::Run& run, const at::Tensor& lse_hn) {
  return lse_hn.unflatten(1, {run.spans, run.length}).transpose(0, 1).unsqueeze(3);
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
void ForwardMath(const AttentionShape& shape, const AttentionHeads& in, at::Tensor out_thk,
                 at::Tensor lse_ht) {
  const at::Tensor q_htk = in.q.transpose(0, 1).to(at::kFloat),
                   k_htk = Repeat(shape, in.k).transpose(0, 1).to(at::kFloat),
                   v_htk = Repeat(shape, in.v).transpose(0, 1).to(at::kFloat);
  at::Tensor scores = at::matmul(q_htk, k_htk.transpose(1, 2)).mul_(ScaleOf(shape));
  MaskUnseen(shape, scores);
  const at::Tensor lse = at::logsumexp(scores, {2}, /*keepdim=*/true);
  out_thk.copy_(at::matmul(scores.sub_(lse).exp_(), v_htk).transpose(0, 1));
  lse_ht.copy_(lse.squeeze(2));
}

/// \returns gradients [T, H, K] of all three: those of a group's keys and values apart for its query heads
AttentionHeads BackwardMath(const AttentionShape& shape, const AttentionHeads& in,
                            const at::Tensor& d_out_thk, const at::Tensor& out_thk,
                            const at::Tensor& lse_ht) {
  const at::Tensor q_htk = in.q.transpose(0, 1).to(at::kFloat),
                   k_htk = Repeat(shape, in.k).transpose(0, 1).to(at::kFloat),
                   v_htk = Repeat(shape, in.v).transpose(0, 1).to(at::kFloat),
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

void ForwardEfficient(const AttentionShape& shape, const AttentionHeads& in, at::Tensor out_thk,
                      at::Tensor lse_ht) {
  const auto result = at::_efficient_attention_forward(
      in.q.unsqueeze(0), Repeat(shape, in.k).unsqueeze(0), Repeat(shape, in.v).unsqueeze(0),
      /*bias=*/{}, /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{}, /*max_seqlen_q=*/{}, /*max_seqlen_k=*/{},
      /*dropout_p=*/0.0, EfficientMask(shape), /*compute_log_sumexp=*/true, ScaleOf(shape));
  out_thk.copy_(std::get<0>(result).squeeze(0));
  lse_ht.copy_(std::get<1>(result).squeeze(0).narrow(1, 0, lse_ht.size(1)));
}

AttentionHeads BackwardEfficient(const AttentionShape& shape, const AttentionHeads& in,
                                 const at::Tensor& d_out_thk, const at::Tensor& out_thk,
                                 const at::Tensor& lse_ht) {
  const int64_t length = in.q.size(0);
  const int64_t padded = (length + kEfficientLseRows - 1) / kEfficientLseRows * kEfficientLseRows;
  at::Tensor lse =
      at::full({1, shape.num_heads, padded}, std::numeric_limits<double>::infinity(), lse_ht.options());
  lse.squeeze(0).narrow(1, 0, length).copy_(lse_ht);
  const auto result = at::_efficient_attention_backward(
      d_out_thk.unsqueeze(0), in.q.unsqueeze(0), Repeat(shape, in.k).unsqueeze(0),
      Repeat(shape, in.v).unsqueeze(0), /*bias=*/{}, out_thk.unsqueeze(0), /*cu_seqlens_q=*/{},
      /*cu_seqlens_k=*/{}, length, length, lse, /*dropout_p=*/0.0, NoDropoutState(lse), NoDropoutState(lse),
      EfficientMask(shape),
      /*bias_requires_grad=*/false, ScaleOf(shape));
  return {std::get<0>(result).squeeze(0), std::get<1>(result).squeeze(0), std::get<2>(result).squeeze(0)};
}

AttentionReach ReachOf(const AttentionShape& shape) {
  return {IsCausal(shape), ScaleOf(shape), FlashLeft(shape), FlashRight(shape)};
}

PackedSpans PackedOf(const SpanTable& spans) {
  return {spans.starts_on_device, spans.longest()};
}

/// What a kernel returned for all rows [N, H, K] becomes the output, unless the caller gave memory for that.
/// \returns false where it has to be copied
bool HandsOver(const AttentionShape& shape, const at::Tensor& result_nhk, at::Tensor& out_nhk) {
  if (out_nhk.defined() || !result_nhk.is_contiguous() || result_nhk.size(0) != shape.num_tokens)
    return false;
  out_nhk = result_nhk.view({shape.num_tokens, shape.num_heads * shape.head_dim});
  return true;
}

at::Tensor HeadsOfOutput(const AttentionShape& shape, const at::Tensor& out_nhk) {
  return out_nhk.view({shape.num_tokens, shape.num_heads, shape.head_dim});
}

void ForwardPacked(const AttentionShape& shape, const at::Tensor& qkv, const SpanTable& spans,
                   at::Tensor& out_nhk, at::Tensor& lse_hn) {
  const AttentionResult result = PackedFlashAttention(HeadsOf(shape, qkv), PackedOf(spans), ReachOf(shape));
  TRAINWRIGHT_CHECK(result.lse.sizes() == at::IntArrayRef({shape.num_heads, shape.num_tokens}));
  const bool copies_out = !HandsOver(shape, result.out, out_nhk),
             copies_lse = lse_hn.defined() || !result.lse.is_contiguous();
  if (!copies_lse) lse_hn = result.lse;
  EnsureAttentionResult(shape, qkv, out_nhk, lse_hn);
  if (copies_out) HeadsOfOutput(shape, out_nhk).copy_(result.out);
  if (copies_lse) lse_hn.copy_(result.lse);
}

void ForwardDense(const AttentionShape& shape, const SpanTable::Run& run, const at::Tensor& qkv,
                  at::Tensor& out_nhk, at::Tensor& lse_hn) {
  const AttentionHeads in = HeadsOf(shape, qkv.narrow(0, run.begin, run.rows()));
  const AttentionResult result = DenseAttention(Dense(run, in), ReachOf(shape));
  const at::Tensor rows_bthk = result.out.transpose(1, 2);
  const bool handed_over = rows_bthk.is_contiguous() && HandsOver(shape, rows_bthk.flatten(0, 1), out_nhk);
  EnsureAttentionResult(shape, qkv, out_nhk, lse_hn);
  if (!handed_over) {
    Dense(run, HeadsOfOutput(shape, out_nhk).narrow(0, run.begin, run.rows())).copy_(result.out);
  }
  const at::Tensor lse = DenseLse(run, lse_hn.narrow(1, run.begin, run.rows()));
  lse.copy_(result.lse.view(lse.sizes()));
}

AttentionHeads BackwardDense(const AttentionShape& shape, const SpanTable::Run& run, const AttentionHeads& in,
                             const at::Tensor& d_out_nhk, const at::Tensor& out_nhk,
                             const at::Tensor& lse_hn) {
  const AttentionHeads gradients =
      DenseAttentionBackward(Dense(run, d_out_nhk), Dense(run, in),
                             {Dense(run, out_nhk), DenseLse(run, lse_hn).contiguous()}, ReachOf(shape));
  const auto rows = [&](const at::Tensor& dense_bhtk) {
    return dense_bhtk.transpose(1, 2).flatten(0, 1);  // a view where the library kept the order of strides
  };
  return {rows(gradients.q), rows(gradients.k), rows(gradients.v)};
}

/// Whether each span of a run has one token, which sees itself alone: its output is its value.
bool IsSingle(const SpanTable::Run& run) {
  return run.length == 1;
}

void ForwardSingle(const AttentionShape& shape, const AttentionHeads& in, at::Tensor out_nhk,
                   at::Tensor lse_hn) {
  out_nhk.copy_(Repeat(shape, in.v));
  const at::Tensor scores_nh = in.q.to(at::kFloat).mul(Repeat(shape, in.k).to(at::kFloat)).sum(2);
  lse_hn.copy_(scores_nh.t().mul(ScaleOf(shape)));
}

/// Its weight is 1 whatever the scores, so queries and keys have no gradient.
AttentionHeads BackwardSingle(const at::Tensor& d_out_nhk) {
  const at::Tensor none_nhk = at::zeros_like(d_out_nhk);
  return {none_nhk, none_nhk, d_out_nhk};
}

/// Flash pads the rows of every span, and the heads of its sums, in scratch memory.
constexpr int64_t kFlashRowPadding = 128;
int64_t FlashHeadDim(int64_t head_dim) {
  const int64_t multiple = head_dim <= 128 ? 32 : 64;
  return (head_dim + multiple - 1) / multiple * multiple;
}

}  // namespace

void EnsureAttentionResult(const AttentionShape& shape, const at::Tensor& qkv, at::Tensor& out_nhk,
                           at::Tensor& lse_hn) {
  if (!out_nhk.defined()) {
    out_nhk = at::empty({shape.num_tokens, shape.num_heads * shape.head_dim}, qkv.options());
  }
  if (!lse_hn.defined()) {
    lse_hn = at::empty({shape.num_heads, shape.num_tokens}, qkv.options().dtype(at::kFloat));
  }
}

int64_t AttentionWorkspaceBytes(AttentionBackend backend, const AttentionShape& shape, at::ScalarType dtype,
                                const SpanTable& spans, int64_t multiprocessors) {
  if (backend == AttentionBackend::kAuto) return 0;
  constexpr int64_t kFp32 = sizeof(float);
  const auto stored = static_cast<int64_t>(at::elementSize(dtype));
  const int64_t heads = shape.num_heads, groups = shape.num_kv_heads, size = shape.head_dim;
  if (backend == AttentionBackend::kFlash) {
    const auto num_spans = static_cast<int64_t>(spans.starts.size() - 1);
    const int64_t padded_rows = shape.num_tokens + kFlashRowPadding * num_spans;
    const int64_t gradients = shape.num_tokens * (heads + 2 * groups) * size * stored;
    const int64_t of_repeats = groups == heads ? 0 : 2 * shape.num_tokens * heads * size * stored;
    const int64_t d_q_sums = padded_rows * heads * FlashHeadDim(size) * kFp32;
    const int64_t units = std::max<int64_t>(1, num_spans * heads),  // of work that need no order among them
        copies = std::max<int64_t>(1, (multiprocessors + units - 1) / units);
    return gradients + of_repeats + copies * d_q_sums + padded_rows * heads * kFp32;
  }
  const int64_t length = spans.longest(), rows = length * heads * size;  // elements of all heads of a span
  if (backend == AttentionBackend::kCudnn && BackendOf(backend, shape, length) == backend) {
    int64_t most_bytes = 0;
    for (const SpanTable::Run& run : spans.EqualRuns()) {
      // Of single tokens their queries, keys and scores in fp32.
      const int64_t row_bytes =
          IsSingle(run) ? 3 * heads * size * kFp32 : (heads + 2 * groups) * size * stored + heads * kFp32;
      most_bytes = std::max(most_bytes, run.rows() * row_bytes);
    }
    return most_bytes;
  }
  if (BackendOf(backend, shape, length) == AttentionBackend::kMath) {
    // q, k, v, d_out, out and three gradients in fp32; the weights, their gradient and the mask.
    return 8 * rows * kFp32 + 2 * length * length * heads * kFp32 + length * length;
  }
  const int64_t repeated = groups == heads ? 0 : 2 * rows * stored;
  return repeated + 3 * rows * stored + length * heads * kFp32;
}

namespace {

/// Calls function(run, backend) for what a backend computes at once: neighbours of one length, or of those
/// that know no batches a span.
template <typename Function>
void ForEachCall(AttentionBackend backend, const AttentionShape& shape, const SpanTable& spans,
                 const Function& function) {
  for (const SpanTable::Run& run : spans.EqualRuns()) {
    const AttentionBackend of_run = BackendOf(backend, shape, run.length);
    if (of_run == AttentionBackend::kCudnn) {
      function(run, of_run);
      continue;
    }
    for (int64_t s = 0; s < run.spans; ++s) {
      function({run.begin + s * run.length, 1, run.length}, of_run);
    }
  }
}

/// The gradients of a group's keys and values are sums over its query heads.
/// \param rope of these rows, or null
/// \param d_qkv contiguous, written
void StoreGradients(const Numerics& numerics, const AttentionShape& shape, const AttentionHeads& gradients,
                    const RopeRows* rope, at::Tensor d_qkv) {
  const bool summed = gradients.k.size(1) == shape.num_kv_heads;
  const auto stored = [&](const at::Tensor& heads) {
    const at::Tensor own = heads.to(d_qkv.scalar_type());
    return own.stride(2) == 1 ? own : own.contiguous();
  };
  const auto optional = [&](const at::Tensor RopeRows::*part) {
    return rope != nullptr ? std::optional(rope->*part) : std::nullopt;
  };
  ops::JoinHeads(stored(gradients.q), stored(summed ? gradients.k : SumRepeats(shape, gradients.k)),
                 stored(summed ? gradients.v : SumRepeats(shape, gradients.v)), optional(&RopeRows::rows_n),
                 optional(&RopeRows::cosines_pk), optional(&RopeRows::sines_pk), numerics.code(), d_qkv);
}

}  // namespace

void TorchAttention(AttentionBackend backend, const AttentionShape& shape, const at::Tensor& qkv,
                    const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn) {
  if (backend == AttentionBackend::kFlash) return ForwardPacked(shape, qkv, spans, out_nhk, lse_hn);
  ForEachCall(backend, shape, spans, [&](const SpanTable::Run& run, AttentionBackend of_run) {
    const bool of_cudnn = of_run == AttentionBackend::kCudnn;
    if (of_cudnn && !IsSingle(run)) return ForwardDense(shape, run, qkv, out_nhk, lse_hn);
    EnsureAttentionResult(shape, qkv, out_nhk, lse_hn);
    const AttentionHeads in = HeadsOf(shape, qkv.narrow(0, run.begin, run.rows()));
    const at::Tensor rows = HeadsOfOutput(shape, out_nhk).narrow(0, run.begin, run.rows()),
                     lse = lse_hn.narrow(1, run.begin, run.rows());
    const auto forward = of_cudnn                                 ? ForwardSingle
                         : of_run == AttentionBackend::kEfficient ? ForwardEfficient
                                                                  : ForwardMath;
    forward(shape, in, rows, lse);
  });
  EnsureAttentionResult(shape, qkv, out_nhk, lse_hn);  // of no span at all
}

void TorchAttentionBackward(AttentionBackend backend, const Numerics& numerics, const AttentionShape& shape,
                            const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                            const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv,
                            const RopeRows* rope) {
  const at::Tensor out = HeadsOfOutput(shape, out_nhk), d_out = HeadsOfOutput(shape, d_out_nhk);
  if (backend == AttentionBackend::kFlash) {
    const AttentionHeads gradients = PackedFlashAttentionBackward(d_out, HeadsOf(shape, qkv), {out, lse_hn},
                                                                  PackedOf(spans), ReachOf(shape));
    return StoreGradients(numerics, shape, gradients, rope, d_qkv);
  }
  ForEachCall(backend, shape, spans, [&](const SpanTable::Run& run, AttentionBackend of_run) {
    const auto rows = [&](const at::Tensor& all) { return all.narrow(0, run.begin, run.rows()); };
    const AttentionHeads in = HeadsOf(shape, rows(qkv));
    const at::Tensor lse = lse_hn.narrow(1, run.begin, run.rows());
    const bool of_cudnn = of_run == AttentionBackend::kCudnn;
    const AttentionHeads gradients = of_cudnn && IsSingle(run) ? BackwardSingle(rows(d_out))
                                     : of_cudnn ? BackwardDense(shape, run, in, rows(d_out), rows(out), lse)
                                     : of_run == AttentionBackend::kEfficient
                                         ? BackwardEfficient(shape, in, rows(d_out), rows(out), lse)
                                         : BackwardMath(shape, in, rows(d_out), rows(out), lse);
    std::optional<RopeRows> of_rows;
    if (rope != nullptr) of_rows = RopeRows{rope->cosines_pk, rope->sines_pk, rows(rope->rows_n)};
    StoreGradients(numerics, shape, gradients, of_rows ? &*of_rows : nullptr, rows(d_qkv));
  });
}

}  // namespace trainwright
