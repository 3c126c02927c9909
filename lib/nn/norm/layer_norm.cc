#include "lib/nn/norm/layer_norm.h"

#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void AddLayerNorm(const Numerics& numerics, const at::Tensor& residual_nd, const at::Tensor& update_nd,
                  const at::Tensor& update_bias_d, const LayerNormWeights& weights, double epsilon,
                  at::Tensor& sum_nd, at::Tensor& normed_nd, LayerNormStatistics& statistics) {
  const ProfileScope scope("add_layer_norm", ProfilePart::kNorm);
  if (!normed_nd.is_cpu()) {
    return ops::AddLayerNorm(residual_nd, ops::IfDefined(update_nd), ops::IfDefined(update_bias_d),
                             weights.weight_d, ops::IfDefined(weights.bias_d), epsilon, numerics.code(),
                             ops::IfDefined(sum_nd), normed_nd, statistics.mean_n, statistics.rstd_n);
  }
  const int64_t width = residual_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void* residual = cpu::StreamData(numerics, residual_nd);
  const void* update = update_nd.defined() ? update_nd.const_data_ptr() : nullptr;
  const float *update_bias = cpu::DataOrNull(update_bias_d),
              *weight = weights.weight_d.const_data_ptr<float>(), *bias = cpu::DataOrNull(weights.bias_d);
  void* sum = update_nd.defined() ? cpu::MutableStreamData(numerics, sum_nd) : nullptr;
  void* normed = normed_nd.mutable_data_ptr();
  float *mean = statistics.mean_n.mutable_data_ptr<float>(),
        *rstd = statistics.rstd_n.mutable_data_ptr<float>();
  cpu::ParallelRows(residual_nd.size(0), 4 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().add_layer_norm(codec, stream, residual, update, update_bias, weight, bias, epsilon,
                                      width, sum, normed, mean, rstd, begin, end);
  });
}

void LayerNormAgain(const Numerics& numerics, const at::Tensor& x_nd, const LayerNormStatistics& statistics,
                    const LayerNormWeights& weights, at::Tensor& normed_nd) {
  const ProfileScope scope("layer_norm_again", ProfilePart::kNorm);
  if (!normed_nd.is_cpu()) {
    return ops::LayerNormAgain(x_nd, statistics.mean_n, statistics.rstd_n, weights.weight_d,
                               ops::IfDefined(weights.bias_d), numerics.code(), normed_nd);
  }
  const int64_t width = x_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void* x = cpu::StreamData(numerics, x_nd);
  const float *mean = statistics.mean_n.const_data_ptr<float>(),
              *rstd = statistics.rstd_n.const_data_ptr<float>(),
              *weight = weights.weight_d.const_data_ptr<float>(), *bias = cpu::DataOrNull(weights.bias_d);
  void* normed = normed_nd.mutable_data_ptr();
  cpu::ParallelRows(x_nd.size(0), 2 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().layer_norm_again(codec, stream, x, mean, rstd, weight, bias, width, normed, begin,
                                        end);
  });
}

void LayerNormBackward(const Numerics& numerics, const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                       const LayerNormStatistics& statistics, const at::Tensor& weight_d, at::Tensor& d_x_nd,
                       at::Tensor& d_weight_d, at::Tensor& d_bias_d, at::Tensor& d_short_nd) {
  const ProfileScope scope("layer_norm_backward", ProfilePart::kNorm);
  if (!d_x_nd.is_cpu()) {
    return ops::LayerNormBackward(d_normed_nd, x_nd, statistics.mean_n, statistics.rstd_n, weight_d,
                                  numerics.code(), d_x_nd, ops::IfDefined(d_weight_d),
                                  ops::IfDefined(d_bias_d), ops::IfDefined(d_short_nd));
  }
  const int64_t width = x_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics), stream = cpu::StreamCodecOf(numerics);
  const void *d_normed = d_normed_nd.const_data_ptr(), *x = cpu::StreamData(numerics, x_nd);
  const float *mean = statistics.mean_n.const_data_ptr<float>(),
              *rstd = statistics.rstd_n.const_data_ptr<float>(), *weight = weight_d.const_data_ptr<float>();
  void* d_x = cpu::MutableStreamData(numerics, d_x_nd);
  float* d_weight = d_weight_d.defined() ? d_weight_d.mutable_data_ptr<float>() : nullptr;
  float* d_bias = d_bias_d.defined() ? d_bias_d.mutable_data_ptr<float>() : nullptr;
  cpu::SumOverRowBlocks(
      x_nd.size(0), d_bias == nullptr ? width : 2 * width,
      [&](float* sums, int64_t begin, int64_t end) {
        cpu::BestKernels().layer_norm_backward(codec, stream, d_normed, x, mean, rstd, weight, width, d_x,
                                               sums, d_bias == nullptr ? nullptr : sums + width, begin, end);
      },
      [&](const float* sums) {
        for (int64_t i = 0; d_weight != nullptr && i < width; ++i) d_weight[i] += sums[i];
        for (int64_t i = 0; d_bias != nullptr && i < width; ++i) d_bias[i] += sums[width + i];
      });
  if (d_short_nd.defined()) RoundInto(numerics, d_x_nd, d_short_nd);
}

}  // namespace trainwright
