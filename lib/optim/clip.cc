#include "lib/optim/clip.h"

#include <cmath>

#include "lib/nn/reduce.h"
#include "lib/nn/step_decision.h"

namespace trainwright {

double GradientNorm(const at::Tensor& gradients) {
  return std::sqrt(SumOfSquares(gradients));
}

ClipResult UnscaleAndClip(at::Tensor& gradients, double loss_scale, double max_norm) {
  ClipResult result;
  result.norm = GradientNorm(gradients) / loss_scale;
  result.finite = std::isfinite(result.norm);
  if (!result.finite) return result;
  const double clip = ClipFactor(result.norm, max_norm);
  if (const double factor = clip / loss_scale; factor != 1.0) gradients.mul_(factor);
  return result;
}

}  // namespace trainwright
