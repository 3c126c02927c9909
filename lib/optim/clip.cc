#include "lib/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "lib/nn/reduce.h"

namespace trainwright {

double GradientNorm(const at::Tensor& gradients) {
  return std::sqrt(SumOfSquares(gradients));
}

ClipResult UnscaleAndClip(at::Tensor& gradients, double loss_scale, double max_norm) {
  ClipResult result;
  result.norm = GradientNorm(gradients) / loss_scale;
  result.finite = std::isfinite(result.norm);
  if (!result.finite) return result;
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (result.norm + 1e-6)) : 1.0;
  if (const double factor = clip / loss_scale; factor != 1.0) gradients.mul_(factor);
  return result;
}

}  // namespace trainwright
