#include "lib/nn/norm/rms_norm.h"

#include <ATen/ops/zeros_like.h>

#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void AddRmsNorm(const Numerics& numerics, const at::Tensor& residual_nd, const at::Tensor& update_nd,
                const at::Tensor& weight_d, double epsilon, at::Tensor& sum_nd, at::Tensor& normed_nd,
                at::Tensor& rstd_n) {
  const ProfileScope scope("add_rms_norm", ProfilePart::kNorm);
  if (!residual_nd.is_cpu()) {
    return ops::AddRmsNorm(residual_nd, ops::IfDefined(update_nd), weight_d, epsilon, numerics.code(), sum_nd,
                           normed_nd, rstd_n);
  }
  const int64_t width = residual_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void* residual = cpu::StreamData(numerics, residual_nd);
  const void* update = update_nd.defined() ? update_nd.const_data_ptr() : nullptr;
  const float* weight = weight_d.const_data_ptr<float>();
  void* sum = update_nd.defined() ? cpu::MutableStreamData(numerics, sum_nd) : nullptr;
  void* normed = normed_nd.mutable_data_ptr();
  float* rstd = rstd_n.mutable_data_ptr<float>();
  cpu::ParallelRows(residual_nd.size(0), 4 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().add_norm(codec, stream, residual, update, weight, epsilon, width, sum, normed, rstd,
                                begin, end);
  });
}

void RmsNormAgain(const Numerics& numerics, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                  const at::Tensor& weight_d, at::Tensor& normed_nd) {
  const ProfileScope scope("rms_norm_again", ProfilePart::kNorm);
  if (!x_nd.is_cpu()) return ops::RmsNormAgain(x_nd, rstd_n, weight_d, numerics.code(), normed_nd);
  const int64_t width = x_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void* x = cpu::StreamData(numerics, x_nd);
  const float *rstd = rstd_n.const_data_ptr<float>(), *weight = weight_d.const_data_ptr<float>();
  void* normed = normed_nd.mutable_data_ptr();
  cpu::ParallelRows(x_nd.size(0), 2 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().norm_again(codec, stream, x, rstd, weight, width, normed, begin, end);
  });
}

void RmsNormBackward(const Numerics& numerics, const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                     const at::Tensor& rstd_n, const at::Tensor& weight_d, at::Tensor& d_x_nd,
                     at::Tensor& d_weight_d, at::Tensor& d_short_nd) {
  const ProfileScope scope("rms_norm_backward", ProfilePart::kNorm);
  if (!x_nd.is_cpu()) {
    at::Tensor sums = d_weight_d.defined() ? d_weight_d : at::zeros_like(weight_d);
    return ops::RmsNormBackward(d_normed_nd, x_nd, rstd_n, weight_d, numerics.code(), d_x_nd, sums,
                                ops::IfDefined(d_short_nd));
  }
  const int64_t rows = x_nd.size(0), width = x_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void *d_normed = d_normed_nd.const_data_ptr(), *x = cpu::StreamData(numerics, x_nd);
  const float *rstd = rstd_n.const_data_ptr<float>(), *weight = weight_d.const_data_ptr<float>();
  void* d_x = cpu::MutableStreamData(numerics, d_x_nd);
  float* d_weight = d_weight_d.defined() ? d_weight_d.mutable_data_ptr<float>() : nullptr;
  cpu::SumOverRowBlocks(
      rows, width,
      [&](float* sums, int64_t begin, int64_t end) {
        cpu::BestKernels().norm_backward(codec, stream, d_normed, x, rstd, weight, width, d_x, sums, begin,
                                         end);
      },
      [&](const float* sums) {
        for (int64_t i = 0; d_weight != nullptr && i < width; ++i) d_weight[i] += sums[i];
      });
  if (d_short_nd.defined()) RoundInto(numerics, d_x_nd, d_short_nd);
}

}  // namespace trainwright
