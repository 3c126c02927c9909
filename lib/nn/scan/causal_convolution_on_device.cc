#include <ATen/ops/arange.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "lib/nn/activation/elementwise.h"
#include "lib/nn/scan/causal_convolution.h"

namespace trainwright::on_device {
namespace {

/// The spans one behind the other, each behind the P rows before it: R rows.
struct PaddedSpans {
  PaddedSpans(const SpanTable& spans, int64_t rows, int64_t before_rows, at::Device device) {
    const int64_t span_count = std::ssize(spans.starts) - 1;
    const at::TensorOptions longs = at::TensorOptions().dtype(at::kLong).device(device);
    const at::Tensor starts =
        (spans.starts_on_device.defined() ? spans.starts_on_device
                                          : at::tensor(spans.starts, at::TensorOptions().dtype(at::kInt)))
            .to(device, at::kLong);
    const at::Tensor begin_s = starts.narrow(0, 0, span_count), end_s = starts.narrow(0, 1, span_count);
    const at::Tensor n = at::arange(rows, longs), place_p = at::arange(before_rows, longs),
                     padding_s = at::arange(span_count, longs).mul(before_rows);
    const at::Tensor span_n = at::searchsorted(end_s, n, /*out_int32=*/false, /*right=*/true);
    row_n = n.add(span_n.add(1).mul(before_rows));
    before_sp = begin_s.add(padding_s).unsqueeze(1).add(place_p).flatten();
    last_sp = end_s.add(padding_s).unsqueeze(1).add(place_p).flatten();
    count = rows + span_count * before_rows;
  }

  int64_t count = 0;     ///< R
  at::Tensor row_n;      ///< where the rows are, int64 [N]
  at::Tensor before_sp;  ///< where those before the spans are, int64 [S P]
  at::Tensor last_sp;    ///< where those are that a span would have before it that goes on, int64 [S P]
};

/// What both directions have in common, fp32.
struct Convolved {
  Convolved(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
            const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz)
      : taps(kernel_zt.size(1)),
        padded(spans, x_nz.size(0), taps - 1, x_nz.device()),
        x_rz(at::zeros({padded.count, x_nz.size(1)}, x_nz.options().dtype(at::kFloat))),
        kernel_tz(kernel_zt.to(at::kFloat).t().contiguous()) {
    x_rz.index_copy_(0, padded.row_n, Loaded(numerics, x_nz));
    if (before_spz.defined() && taps > 1) {
      x_rz.index_copy_(0, padded.before_sp, before_spz.flatten(0, 1));
    }
    if (scale_k.defined()) scale_z = scale_k.repeat({2});
    p_nz = Tapped(0).mul(kernel_tz[0]);
    for (int64_t tap = 1; tap < taps; ++tap) p_nz.add_(Tapped(tap).mul(kernel_tz[tap]));
    sigmoid_nz = at::sigmoid(p_nz);
  }

  /// The rows so far before each.
  at::Tensor Tapped(int64_t tap) const { return x_rz.index_select(0, padded.row_n.sub(tap)); }
  at::Tensor Scaled(const at::Tensor& rows_nz) const {
    return scale_z.defined() ? rows_nz.mul(scale_z) : rows_nz;
  }

  int64_t taps;
  PaddedSpans padded;
  at::Tensor x_rz, kernel_tz, scale_z, p_nz, sigmoid_nz;
};

}  // namespace

void CausalConvolution(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                       const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz,
                       at::Tensor& out_nz, at::Tensor& last_spz) {
  const Convolved convolved(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  RoundInto(numerics, convolved.Scaled(convolved.p_nz.mul(convolved.sigmoid_nz)), out_nz);
  if (!last_spz.defined()) return;
  last_spz.copy_(convolved.x_rz.index_select(0, convolved.padded.last_sp).view(last_spz.sizes()));
}

void CausalConvolutionBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                               const at::Tensor& scale_k, const SpanTable& spans,
                               const at::Tensor& before_spz, const at::Tensor& d_out_nz,
                               ConvolutionGradients& gradients) {
  const Convolved convolved(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  const PaddedSpans& padded = convolved.padded;
  const at::Tensor d_out = Loaded(numerics, d_out_nz);
  const at::Tensor silu = convolved.p_nz.mul(convolved.sigmoid_nz);
  const at::Tensor slope = convolved.sigmoid_nz.add(silu.mul(convolved.sigmoid_nz.neg().add(1)));
  const at::Tensor d_p = convolved.Scaled(d_out).mul(slope);
  // Within a tap no two rows are added to one place, so that the order of sums is that of the taps.
  at::Tensor d_x_rz = at::zeros_like(convolved.x_rz);
  for (int64_t tap = 0; tap < convolved.taps; ++tap) {
    d_x_rz.index_add_(0, padded.row_n.sub(tap), d_p.mul(convolved.kernel_tz[tap]));
    if (!gradients.kernel_zt.defined()) continue;
    gradients.kernel_zt.select(1, tap).add_(d_p.mul(convolved.Tapped(tap)).sum(0));
  }
  RoundInto(numerics, d_x_rz.index_select(0, padded.row_n), gradients.x_nz);
  if (gradients.scale_k.defined()) {
    const at::Tensor d_scale_z = d_out.mul(silu).sum(0, /*keepdim=*/false, at::kDouble);
    gradients.scale_k.copy_(d_scale_z.view({2, d_scale_z.numel() / 2}).sum(0));
  }
  if (!gradients.before_spz.defined()) return;
  gradients.before_spz.copy_(d_x_rz.index_select(0, padded.before_sp).view(gradients.before_spz.sizes()));
}

}  // namespace trainwright::on_device
