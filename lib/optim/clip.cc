#include "lib/optim/clip.h"

#include <cmath>

#include "lib/base/profile_scope.h"
#include "lib/nn/reduce.h"
#include "lib/nn/update/step_decision.h"

namespace trainwright {

double GradientNorm(FlatParameters* parameters) {
  const ProfileScope scope("gradient_norm", ProfilePart::kClip);
  SquareSum sum;
  parameters->ForEachGradientPart([&](int64_t, const at::Tensor& gradients) { sum.Add(gradients); });
  return std::sqrt(sum.total());
}

ClipResult DecideClip(FlatParameters* parameters, double loss_scale, double max_norm) {
  return DecideClip(GradientNorm(parameters), loss_scale, max_norm);
}

ClipResult DecideClip(double norm, double loss_scale, double max_norm) {
  ClipResult result;
  result.norm = norm / loss_scale;
  result.finite = std::isfinite(result.norm);
  if (result.finite) result.factor = ClipFactor(result.norm, max_norm) / loss_scale;
  return result;
}

}  // namespace trainwright
