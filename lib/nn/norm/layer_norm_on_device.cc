#include "lib/nn/activation/elementwise.h"
#include "lib/nn/norm/layer_norm.h"

namespace trainwright::on_device {
namespace {

/// (x - mean) / deviation.
at::Tensor Normal(const at::Tensor& x_nd, const LayerNormStatistics& statistics) {
  return x_nd.sub(statistics.mean_n.unsqueeze(1)).mul(statistics.rstd_n.unsqueeze(1));
}

}  // namespace

void AddLayerNorm(const Numerics& numerics, const at::Tensor& residual_nd, const at::Tensor& update_nd,
                  const at::Tensor& update_bias_d, const LayerNormWeights& weights, double epsilon,
                  at::Tensor& sum_nd, at::Tensor& normed_nd, LayerNormStatistics& statistics) {
  if (update_nd.defined()) {
    sum_nd.copy_(residual_nd).add_(Loaded(numerics, update_nd));
    if (update_bias_d.defined()) sum_nd.add_(update_bias_d);
  }
  const at::Tensor& x_nd = update_nd.defined() ? sum_nd : residual_nd;
  statistics.mean_n.copy_(x_nd.mean(1));
  const at::Tensor centered_nd = x_nd.sub(statistics.mean_n.unsqueeze(1));
  statistics.rstd_n.copy_(centered_nd.square().mean(1).add(epsilon).rsqrt());
  on_device::LayerNormAgain(numerics, x_nd, statistics, weights, normed_nd);
}

void LayerNormAgain(const Numerics& numerics, const at::Tensor& x_nd, const LayerNormStatistics& statistics,
                    const LayerNormWeights& weights, at::Tensor& normed_nd) {
  const at::Tensor scaled_nd = Normal(x_nd, statistics).mul(weights.weight_d);
  RoundInto(numerics, weights.bias_d.defined() ? scaled_nd.add(weights.bias_d) : scaled_nd, normed_nd);
}

void LayerNormBackward(const Numerics& numerics, const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                       const LayerNormStatistics& statistics, const at::Tensor& weight_d, at::Tensor& d_x_nd,
                       at::Tensor& d_weight_d, at::Tensor& d_bias_d) {
  const at::Tensor d_out_nd = Loaded(numerics, d_normed_nd), normal_nd = Normal(x_nd, statistics);
  if (d_weight_d.defined()) d_weight_d.add_(d_out_nd.mul(normal_nd).sum(0));
  if (d_bias_d.defined()) d_bias_d.add_(d_out_nd.sum(0));
  const at::Tensor d_normal_nd = d_out_nd.mul(weight_d);
  const at::Tensor along_n = d_normal_nd.mul(normal_nd).mean(1, /*keepdim=*/true);
  d_x_nd.add_(d_normal_nd.sub(d_normal_nd.mean(1, /*keepdim=*/true))
                  .sub(normal_nd.mul(along_n))
                  .mul(statistics.rstd_n.unsqueeze(1)));
}

}  // namespace trainwright::on_device
