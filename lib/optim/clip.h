/// Norm, unscaling and clipping of a model's gradients: what is decided from one pass over them. The
/// optimizer applies it in its own pass.
#pragma once

#include "lib/nn/parameters/flat_parameters.h"

namespace trainwright {

/// Euclidean norm, summed in fp64 in an order that depends on the size alone; not finite when an element is
/// not.
/// \throws Error{kIo} where gradients are offloaded
double GradientNorm(FlatParameters* parameters);

struct ClipResult {
  double norm = 0;  ///< of the unscaled gradients, before clipping
  bool finite = true;
  double factor = 1;  ///< what the gradients are to be multiplied by; not finite ones are not to be used
};

/// How to undo `loss_scale` and scale down to a norm of at most `max_norm` (0: no clipping), as
/// torch.nn.utils.clip_grad_norm_ does: factor min(1, max_norm / (norm + 1e-6)). Changes no gradient.
ClipResult DecideClip(FlatParameters* parameters, double loss_scale, double max_norm);
/// The same where the norm of the gradients is known.
ClipResult DecideClip(double norm, double loss_scale, double max_norm);

}  // namespace trainwright
