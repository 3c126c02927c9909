/// Unscaling and clipping of the flat gradient buffer in one pass over it.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// Euclidean norm, summed in fp64 in an order that depends on the size alone; not finite when an element is
/// not. \param gradients fp32 [n], contiguous
double GradientNorm(const at::Tensor& gradients);

struct ClipResult {
  double norm = 0;  ///< of the unscaled gradients, before clipping
  bool finite = true;
};

/// Divides by `loss_scale` and scales down to a norm of at most `max_norm` (0: no clipping), as
/// torch.nn.utils.clip_grad_norm_ does: factor min(1, max_norm / (norm + 1e-6)).
/// Gradients that are not finite are left as they are; the caller skips the step.
ClipResult UnscaleAndClip(at::Tensor& gradients, double loss_scale, double max_norm);

}  // namespace trainwright
