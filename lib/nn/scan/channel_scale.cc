#include "lib/nn/scan/channel_scale.h"

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

void CheckInputs(const at::Tensor& x_nz, const at::Tensor& scale_k) {
  TRAINWRIGHT_CHECK(x_nz.is_contiguous() && scale_k.is_contiguous() && x_nz.size(1) == 2 * scale_k.numel());
}

}  // namespace

void ChannelScale(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                  at::Tensor& out_nz) {
  const ProfileScope scope("channel_scale", ProfilePart::kScan);
  CheckInputs(x_nz, scale_k);
  if (out_nz.is_meta()) return;  // nothing to compute
  if (!out_nz.is_cpu()) return on_device::ChannelScale(numerics, x_nz, scale_k, out_nz);
  const int64_t width = x_nz.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const at::Tensor scale_z = scale_k.repeat({2});
  const auto* scale = scale_z.const_data_ptr<float>();
  const void* x = x_nz.const_data_ptr();
  void* out = out_nz.mutable_data_ptr();
  cpu::ParallelRows(x_nz.size(0), 2 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().scale_columns(codec, x, scale, width, out, begin, end);
  });
}

void ChannelScaleBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                          const at::Tensor& d_out_nz, at::Tensor& d_x_nz, at::Tensor& d_scale_k) {
  const ProfileScope scope("channel_scale_backward", ProfilePart::kScan);
  CheckInputs(x_nz, scale_k);
  if (d_x_nz.is_meta()) return;
  if (!d_x_nz.is_cpu()) {
    return on_device::ChannelScaleBackward(numerics, x_nz, scale_k, d_out_nz, d_x_nz, d_scale_k);
  }
  const int64_t width = x_nz.size(1), channels = scale_k.numel();
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const at::Tensor scale_z = scale_k.repeat({2});
  const auto* scale = scale_z.const_data_ptr<float>();
  const void *x = x_nz.const_data_ptr(), *d_out = d_out_nz.const_data_ptr();
  void* d_x = d_x_nz.mutable_data_ptr();
  double* d_scale = d_scale_k.defined() ? d_scale_k.zero_().mutable_data_ptr<double>() : nullptr;
  cpu::SumOverRowBlocks(
      x_nz.size(0), width,
      [&](float* sums, int64_t begin, int64_t end) {
        cpu::BestKernels().scale_columns_backward(codec, x, scale, d_out, width, d_x,
                                                  d_scale == nullptr ? nullptr : sums, begin, end);
      },
      [&](const float* sums) {
        for (int64_t i = 0; d_scale != nullptr && i < width; ++i) {
          d_scale[i % channels] += static_cast<double>(sums[i]);
        }
      });
}

namespace on_device {

void ChannelScale(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                  at::Tensor& out_nz) {
  RoundInto(numerics, Loaded(numerics, x_nz).mul(scale_k.repeat({2})), out_nz);
}

void ChannelScaleBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                          const at::Tensor& d_out_nz, at::Tensor& d_x_nz, at::Tensor& d_scale_k) {
  const at::Tensor d_out = Loaded(numerics, d_out_nz);
  if (d_scale_k.defined()) {
    const at::Tensor d_scale_z = d_out.mul(Loaded(numerics, x_nz)).sum(0, /*keepdim=*/false, at::kDouble);
    d_scale_k.copy_(d_scale_z.view({2, scale_k.numel()}).sum(0));
  }
  RoundInto(numerics, d_out.mul(scale_k.repeat({2})), d_x_nz);
}

}  // namespace on_device
}  // namespace trainwright
