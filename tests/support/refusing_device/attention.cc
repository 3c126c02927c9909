// Torch's attention for GPUs on the refusing device: the formulas in fp32, with the arguments, layouts and
// results of the CUDA kernels of torch 2.11.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/host_view.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright::test {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalInt = std::optional<int64_t>;

struct Mask {
  bool causal = false;
  int64_t left = -1, right = -1;  ///< how far a query sees; negative: to the end
  double scale = 1;
};

Mask MaskOf(const at::Tensor& query, bool causal, std::optional<double> scale, OptionalInt left = {},
            OptionalInt right = {}) {
  return {causal, left.value_or(-1), right.value_or(-1),
          scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))))};
}

/// [T, H, K] of any type to [heads, T, K] in fp32, a group's head once for each of its query heads.
at::Tensor ByHeads(const at::Tensor& in_thk, int64_t heads) {
  return in_thk.to(at::kFloat).transpose(0, 1).repeat_interleave(heads / in_thk.size(1), 0);
}

/// [H, T, K] back to the layout and type of `like` [T, G, K], whose heads are sums over their group.
at::Tensor Back(const at::Tensor& heads_htk, const at::Tensor& like) {
  const int64_t groups = like.size(1);
  return heads_htk.unflatten(0, {groups, heads_htk.size(0) / groups})
      .sum(1)
      .transpose(0, 1)
      .to(like.scalar_type());
}

at::Tensor Scores(const Mask& mask, const at::Tensor& q_htk, const at::Tensor& k_htk) {
  at::Tensor scores = at::matmul(q_htk, k_htk.transpose(1, 2)).mul_(mask.scale);
  const at::Tensor all = at::ones({scores.size(1), scores.size(2)}, at::kBool);
  at::Tensor hidden = all.logical_not();
  const int64_t right = mask.causal ? 0 : mask.right;
  if (right >= 0) hidden.logical_or_(all.triu(right + 1));
  if (mask.left >= 0) hidden.logical_or_(all.tril(-mask.left - 1));
  return scores.masked_fill_(hidden, -std::numeric_limits<float>::infinity());
}

/// One span, of tensors of the host.
/// \returns out [T, H, K] in the type of the query, and lse [H, T]
std::tuple<at::Tensor, at::Tensor> Attend(const Mask& mask, const at::Tensor& q_thk, const at::Tensor& k_tgk,
                                          const at::Tensor& v_tgk) {
  const int64_t heads = q_thk.size(1);
  const at::Tensor scores = Scores(mask, ByHeads(q_thk, heads), ByHeads(k_tgk, heads));
  const at::Tensor lse = at::logsumexp(scores, {2}, /*keepdim=*/true);
  const at::Tensor out = at::matmul(scores.sub(lse).exp_(), ByHeads(v_tgk, heads));
  return {out.transpose(0, 1).to(q_thk.scalar_type()), lse.squeeze(2)};
}

struct Gradients {
  at::Tensor q, k, v;
};

Gradients AttendBackward(const Mask& mask, const at::Tensor& d_out_thk, const at::Tensor& q_thk,
                         const at::Tensor& k_tgk, const at::Tensor& v_tgk, const at::Tensor& out_thk,
                         const at::Tensor& lse_ht) {
  const int64_t heads = q_thk.size(1);
  const at::Tensor q = ByHeads(q_thk, heads), k = ByHeads(k_tgk, heads), v = ByHeads(v_tgk, heads),
                   d_out = ByHeads(d_out_thk, heads), out = ByHeads(out_thk, heads);
  const at::Tensor p = Scores(mask, q, k).sub_(lse_ht.unsqueeze(2)).exp_();
  const at::Tensor d_scores = at::matmul(d_out, v.transpose(1, 2))
                                  .sub_(d_out.mul(out).sum(2, /*keepdim=*/true))
                                  .mul_(p)
                                  .mul_(mask.scale);
  return {Back(at::matmul(d_scores, k), q_thk), Back(at::matmul(d_scores.transpose(1, 2), q), k_tgk),
          Back(at::matmul(p.transpose(1, 2), d_out), v_tgk)};
}

at::Tensor OnDevice(const at::Tensor& host) {
  return HostViews().OnDevice(host);
}
at::Tensor NoState() {
  return at::empty({}, at::TensorOptions().dtype(at::kLong).device(kRefusingDevice));
}

/// Calls `span(begin, length)` for each span between starts of the device.
template <typename Function>
void ForEachSpan(const at::Tensor& starts, int64_t rows, int64_t longest, const Function& span) {
  TORCH_CHECK(starts.scalar_type() == at::kInt && starts.dim() == 1 && starts.is_contiguous());
  const auto* begin = starts.const_data_ptr<int32_t>();
  TORCH_CHECK(begin[0] == 0 && begin[starts.numel() - 1] == rows, "the spans are not those of the rows");
  for (int64_t s = 0; s + 1 < starts.numel(); ++s) {
    TORCH_CHECK(begin[s + 1] >= begin[s] && begin[s + 1] - begin[s] <= longest, "a span is longer than said");
    if (begin[s + 1] > begin[s]) span(begin[s], begin[s + 1] - begin[s]);
  }
}

/// What flash and cudnn take.
void CheckShort(const at::Tensor& query, int64_t most) {
  TORCH_CHECK(at::isReducedFloatingType(query.scalar_type()), "takes bf16 and fp16");
  TORCH_CHECK(query.stride(-1) == 1 && query.size(-1) % 8 == 0 && query.size(-1) <= most,
              "takes heads of a multiple of 8 elements");
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> FlashForward(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& starts_q,
    const OptionalTensor& starts_k, int64_t longest_q, int64_t longest_k, double dropout, bool causal, bool,
    std::optional<double> scale, OptionalInt left, OptionalInt right, const OptionalTensor&,
    const OptionalTensor&) {
  TORCH_CHECK(dropout == 0 && starts_q && starts_k && longest_q == longest_k && query.dim() == 3);
  CheckShort(query, 256);
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query), k = views.Of(key), v = views.Of(value);
  const Mask mask = MaskOf(q, causal, scale, left, right);
  const at::Tensor out = at::empty(q.sizes(), q.options());
  const at::Tensor lse = at::empty({q.size(1), q.size(0)}, at::kFloat);
  ForEachSpan(views.Of(*starts_q), q.size(0), longest_q, [&](int64_t begin, int64_t length) {
    const auto rows = [&](const at::Tensor& all) { return all.narrow(0, begin, length); };
    const auto [out_of_span, lse_of_span] = Attend(mask, rows(q), rows(k), rows(v));
    rows(out).copy_(out_of_span);
    lse.narrow(1, begin, length).copy_(lse_of_span);
  });
  return {OnDevice(out), OnDevice(lse), NoState(), NoState(), NoState()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> FlashBackward(
    const at::Tensor& d_out_in, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out_in, const at::Tensor& lse_in, const at::Tensor& starts_q, const at::Tensor&,
    int64_t longest_q, int64_t longest_k, double dropout, bool causal, const at::Tensor&, const at::Tensor&,
    std::optional<double> scale, OptionalInt left, OptionalInt right) {
  TORCH_CHECK(dropout == 0 && longest_q == longest_k && lse_in.scalar_type() == at::kFloat);
  CheckShort(query, 256);
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query), k = views.Of(key), v = views.Of(value), d_out = views.Of(d_out_in),
                   out = views.Of(out_in), lse = views.Of(lse_in);
  const Mask mask = MaskOf(q, causal, scale, left, right);
  const at::Tensor d_q = at::empty(q.sizes(), q.options()), d_k = at::empty(k.sizes(), k.options()),
                   d_v = at::empty(v.sizes(), v.options());
  ForEachSpan(views.Of(starts_q), q.size(0), longest_q, [&](int64_t begin, int64_t length) {
    const auto rows = [&](const at::Tensor& all) { return all.narrow(0, begin, length); };
    const Gradients gradients =
        AttendBackward(mask, rows(d_out), rows(q), rows(k), rows(v), rows(out), lse.narrow(1, begin, length));
    rows(d_q).copy_(gradients.q);
    rows(d_k).copy_(gradients.k);
    rows(d_v).copy_(gradients.v);
  });
  return {OnDevice(d_q), OnDevice(d_k), OnDevice(d_v)};
}

constexpr int64_t kCausalFromTopLeft = 1;
constexpr int64_t kEfficientLseRows = 32;

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> EfficientForward(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
    const OptionalTensor& starts_q, const OptionalTensor&, OptionalInt, OptionalInt, double dropout,
    int64_t mask_type, bool with_lse, std::optional<double> scale, const OptionalTensor&,
    OptionalInt window) {
  TORCH_CHECK(dropout == 0 && !bias && !starts_q && !window && with_lse && query.size(0) == 1);
  TORCH_CHECK(query.size(2) == key.size(2) && query.stride(-1) == 1,
              "takes as many key heads as query heads");
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query)[0], k = views.Of(key)[0], v = views.Of(value)[0];
  const auto [out, lse] = Attend(MaskOf(q, mask_type == kCausalFromTopLeft, scale), q, k, v);
  const int64_t rows = q.size(0),
                padded = (rows + kEfficientLseRows - 1) / kEfficientLseRows * kEfficientLseRows;
  const at::Tensor padded_lse = at::full({1, q.size(1), padded}, std::numeric_limits<float>::infinity());
  padded_lse[0].narrow(1, 0, rows).copy_(lse);
  return {
      OnDevice(out.unsqueeze(0).contiguous()), OnDevice(padded_lse), NoState(), NoState(), rows, k.size(0)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> EfficientBackward(
    const at::Tensor& d_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const OptionalTensor& bias, const at::Tensor& out, const OptionalTensor& starts_q, const OptionalTensor&,
    int64_t, int64_t, const at::Tensor& lse_in, double dropout, const at::Tensor&, const at::Tensor&,
    int64_t mask_type, bool, std::optional<double> scale, OptionalInt, OptionalInt window, bool) {
  TORCH_CHECK(dropout == 0 && !bias && !starts_q && !window && query.size(0) == 1);
  TORCH_CHECK(lse_in.size(2) % kEfficientLseRows == 0 && lse_in.size(2) >= query.size(1));
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query)[0], k = views.Of(key)[0], v = views.Of(value)[0];
  const Gradients gradients =
      AttendBackward(MaskOf(q, mask_type == kCausalFromTopLeft, scale), views.Of(d_out)[0], q, k, v,
                     views.Of(out)[0], views.Of(lse_in)[0].narrow(1, 0, q.size(0)));
  return {OnDevice(gradients.q.unsqueeze(0).contiguous()), OnDevice(gradients.k.unsqueeze(0).contiguous()),
          OnDevice(gradients.v.unsqueeze(0).contiguous()), at::Tensor()};
}

/// A span of [B, H, T, K] as [T, H, K].
at::Tensor Rows(const at::Tensor& heads_bhtk, int64_t span) {
  return heads_bhtk[span].transpose(0, 1);
}

/// What cuDNN takes: heads of spans of one length, which is more than a token, with keys and values of a
/// number that divides the queries', every stride but the last of 16 bytes.
void CheckDense(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  CheckShort(query, 128);
  TORCH_CHECK(query.dim() == 4 && query.size(2) > 1, "has no backward pass of spans of one token");
  for (const at::Tensor& heads : {query, key, value}) {
    TORCH_CHECK(heads.dim() == 4 && heads.stride(3) == 1 && heads.storage_offset() % 8 == 0);
    for (int64_t dimension = 0; dimension < 3; ++dimension) TORCH_CHECK(heads.stride(dimension) % 8 == 0);
    TORCH_CHECK(heads.size(0) == query.size(0) && heads.size(2) == query.size(2) &&
                heads.size(3) == query.size(3) && query.size(1) % heads.size(1) == 0);
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor,
           at::Tensor>
CudnnForward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
             const OptionalTensor& bias, bool with_lse, double dropout, bool causal, bool,
             std::optional<double> scale) {
  TORCH_CHECK(dropout == 0 && !bias && with_lse);
  CheckDense(query, key, value);
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query), k = views.Of(key), v = views.Of(value);
  // Results are allocated in the order of the query's strides.
  const at::Tensor out = at::empty_like(q), lse = at::empty({q.size(0), q.size(1), q.size(2), 1}, at::kFloat);
  for (int64_t span = 0; span < q.size(0); ++span) {
    const auto [out_of_span, lse_of_span] =
        Attend(MaskOf(q, causal, scale), Rows(q, span), Rows(k, span), Rows(v, span));
    Rows(out, span).copy_(out_of_span);
    lse[span].squeeze(2).copy_(lse_of_span);
  }
  return {OnDevice(out), OnDevice(lse), at::Tensor(), at::Tensor(), q.size(2),
          k.size(2),     NoState(),     NoState(),    at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> CudnnBackward(
    const at::Tensor& d_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor&, int64_t, int64_t, double dropout, bool causal,
    std::optional<double> scale) {
  TORCH_CHECK(dropout == 0 && lse.is_contiguous() &&
                  lse.sizes() == at::IntArrayRef({query.size(0), query.size(1), query.size(2), 1}),
              "its statistics are [B, H, T, 1]");
  CheckDense(query, key, value);
  CountKernel();
  HostViews views;
  const at::Tensor q = views.Of(query), k = views.Of(key), v = views.Of(value);
  const at::Tensor d_q = at::empty_like(q), d_k = at::empty_like(k), d_v = at::empty_like(v);
  for (int64_t span = 0; span < q.size(0); ++span) {
    const Gradients gradients =
        AttendBackward(MaskOf(q, causal, scale), Rows(views.Of(d_out), span), Rows(q, span), Rows(k, span),
                       Rows(v, span), Rows(views.Of(out), span), views.Of(lse)[span].squeeze(2));
    Rows(d_q, span).copy_(gradients.q);
    Rows(d_k, span).copy_(gradients.k);
    Rows(d_v, span).copy_(gradients.v);
  }
  return {OnDevice(d_q), OnDevice(d_k), OnDevice(d_v)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_flash_attention_forward", &Kept<&FlashForward>::Call);
  library.impl("_flash_attention_backward", &Kept<&FlashBackward>::Call);
  library.impl("_efficient_attention_forward", &Kept<&EfficientForward>::Call);
  library.impl("_efficient_attention_backward", &Kept<&EfficientBackward>::Call);
  library.impl("_scaled_dot_product_cudnn_attention", &Kept<&CudnnForward>::Call);
  library.impl("_scaled_dot_product_cudnn_attention_backward", &Kept<&CudnnBackward>::Call);
}

}  // namespace
}  // namespace trainwright::test
