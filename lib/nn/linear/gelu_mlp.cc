#include "lib/nn/linear/gelu_mlp.h"

#include "lib/nn/activation/gelu.h"

namespace trainwright {

void GeluMlp::Forward(const at::Tensor& x_nd, at::Tensor& kept_nf, at::Tensor& activation_nf) const {
  if (kind_ == GeluKind::kTanh && up_.ForwardThroughGelu(x_nd, kept_nf, activation_nf)) return;
  KeptAgain(x_nd, kept_nf);
  ActivationAgain(kept_nf, activation_nf);
}

void GeluMlp::KeptAgain(const at::Tensor& x_nd, at::Tensor& kept_nf) const {
  if (x_nd.is_cpu()) {
    up_.ForwardWithoutBias(x_nd, kept_nf);
  } else {
    up_.Forward(x_nd, kept_nf);
  }
}

void GeluMlp::ActivationAgain(const at::Tensor& kept_nf, at::Tensor& activation_nf) const {
  Gelu(numerics_, kind_, kept_nf, kept_nf.is_cpu() ? up_.bias() : at::Tensor(), activation_nf);
}

at::Tensor GeluMlp::BackwardDown(const at::Tensor& dy_nd, const at::Tensor& activation_nf,
                                 at::Tensor& kept_nf, at::Tensor& d_activation_nf, bool below) const {
  at::Tensor unwanted;
  if (!below) {
    down_.Backward(dy_nd, activation_nf, unwanted);
    return {};
  }
  if (kind_ == GeluKind::kTanh && down_.BackwardIntoGelu(dy_nd, kept_nf, d_activation_nf)) {
    down_.Backward(dy_nd, activation_nf, unwanted);
    return d_activation_nf;
  }
  down_.Backward(dy_nd, activation_nf, d_activation_nf);
  const bool on_cpu = kept_nf.is_cpu();
  at::Tensor d_bias = on_cpu ? up_.bias_gradient() : at::Tensor();
  GeluBackward(numerics_, kind_, d_activation_nf, on_cpu ? up_.bias() : at::Tensor(), kept_nf, d_bias);
  return kept_nf;
}

void GeluMlp::BackwardUp(const at::Tensor& d_pre_nf, const at::Tensor& x_nd, at::Tensor& d_x_nd) const {
  if (x_nd.is_cpu()) {
    up_.BackwardWithoutBias(d_pre_nf, x_nd, d_x_nd);
  } else {
    up_.Backward(d_pre_nf, x_nd, d_x_nd);
  }
}

}  // namespace trainwright
