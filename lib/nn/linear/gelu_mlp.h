/// The MLP of GPT-2 and NeoX: a layer, GELU, and a layer that reads it.
///
/// What a forward pass keeps for its backward pass is the input of the GELU. On a CPU it is kept without its
/// bias, which the GELU adds; on a GPU with it, as the GEMMs write it. There a GELU by tanh and its
/// derivative are part of the GEMMs (product_ops.h) where no adapters are: the activation that the second
/// layer reads is then that of the fp32 sum, while one that is computed again reads the rounded input.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// Of layers that outlive it.
class GeluMlp {
 public:
  GeluMlp(const Numerics& numerics, GeluKind kind, const Linear& up, const Linear& down)
      : numerics_(numerics), kind_(kind), up_(up), down_(down) {}
  /// \param kept_nf, activation_nf written
  void Forward(const at::Tensor& x_nd, at::Tensor& kept_nf, at::Tensor& activation_nf) const;
  /// Writes kept_nf alone.
  void KeptAgain(const at::Tensor& x_nd, at::Tensor& kept_nf) const;
  void ActivationAgain(const at::Tensor& kept_nf, at::Tensor& activation_nf) const;
  /// The second layer's gradients and, where something below is trained, the way through the GELU.
  /// \param kept_nf may be overwritten
  /// \param d_activation_nf scratch of the same shape
  /// \returns the gradient of the first layer's output, in one of these; undefined unless `below`
  at::Tensor BackwardDown(const at::Tensor& dy_nd, const at::Tensor& activation_nf, at::Tensor& kept_nf,
                          at::Tensor& d_activation_nf, bool below) const;
  /// The first layer's gradients.
  /// \param d_pre_nf what BackwardDown returned
  /// \param d_x_nd set, unless undefined
  void BackwardUp(const at::Tensor& d_pre_nf, const at::Tensor& x_nd, at::Tensor& d_x_nd) const;

 private:
  const Numerics& numerics_;
  const GeluKind kind_;
  const Linear& up_;
  const Linear& down_;
};

}  // namespace trainwright
