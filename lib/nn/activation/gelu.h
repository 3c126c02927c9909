/// The Gaussian error linear unit, exact or by tanh, with the bias of the linear layer before it.
/// \source Hendrycks and Gimpel 2016, arXiv:1606.08415
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// out_nf = gelu(in_nf + bias_f).
/// \param in_nf, out_nf storage type
/// \param bias_f fp32, or undefined: none
void Gelu(const Numerics& numerics, GeluKind kind, const at::Tensor& in_nf, const at::Tensor& bias_f,
          at::Tensor& out_nf);
/// Overwrites in_nf with its gradient.
/// \param d_bias_f fp32: the column sums of the gradient are added, as AccumulateBiasGradient (bias.h) adds
///     them; undefined: not wanted
void GeluBackward(const Numerics& numerics, GeluKind kind, const at::Tensor& d_out_nf,
                  const at::Tensor& bias_f, at::Tensor& in_nf, at::Tensor& d_bias_f);

}  // namespace trainwright
