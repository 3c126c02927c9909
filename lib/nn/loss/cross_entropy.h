/// Softmax and cross-entropy of a slice of logits, with the gradient in their place.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/loss/loss_terms.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// What gradients are multiplied by: a number of the host, times one that a GPU holds where there is such a
/// one (the loss scale of fp16, which changes without the host knowing).
struct GradientScale {
  GradientScale(double factor) : factor(factor) {}  // NOLINT: a number is a scale
  GradientScale(double factor, at::Tensor on_device) : factor(factor), on_device(std::move(on_device)) {}
  double factor;
  at::Tensor on_device;  ///< fp64 [1] on the logits' device, or undefined: 1
};

/// losses_n3 = the cross-entropy, what smoothing adds, and the z-loss of every row (see LossTerms), in nats.
/// With `gradients` the logits are overwritten by scale times the gradient of their sum.
/// \param logits_np storage type [N, P], P >= V, unrounded under emulation; columns after the V-th are pads,
/// which are ignored and get the gradient 0
/// \param targets_n int64, each in [0, V), or negative: losses and gradient of the row are 0
/// \param vocabulary V
/// \param losses_n3 fp64 [N, 3]
void SoftmaxCrossEntropy(const Numerics& numerics, at::Tensor& logits_np, const at::Tensor& targets_n,
                         int64_t vocabulary, const LossTerms& terms, const GradientScale& scale,
                         bool gradients, at::Tensor& losses_n3);

}  // namespace trainwright
