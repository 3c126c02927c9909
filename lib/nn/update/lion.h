/// Lion, an element at a time: what the CPU's kernel and the GPU's share.
///
/// With gradient g, momentum m, value v, learning rate l and decay w: v = (1 - l w) v - l sign(beta1 m +
/// (1 - beta1) g), then m = beta2 m + (1 - beta2) g; the sign of zero is zero. All in fp32.
/// \source Chen et al. 2023, arXiv:2302.06675, Algorithm 2
#pragma once

#include "lib/nn/host_device.h"

namespace trainwright {

/// What is the same for every update of a range of elements.
struct LionHyperparameters {
  double learning_rate, beta1, beta2, weight_decay;
};

/// Of one update of the weights.
struct LionCoefficients {
  float divisor;       ///< of the gradients
  float decay;         ///< 1 - learning rate * weight decay
  float beta1, first;  ///< first: 1 - beta1
  float beta2, second;
  float learning_rate;
};

// Internal linkage: as in bf16_moments.h.
#define TRAINWRIGHT_SHARED [[gnu::always_inline]] TRAINWRIGHT_HOST_DEVICE static inline

/// \param divisor of the gradients
TRAINWRIGHT_SHARED LionCoefficients CoefficientsOf(const LionHyperparameters& of, double divisor) {
  LionCoefficients c;
  c.divisor = static_cast<float>(divisor);
  c.decay = static_cast<float>(1 - of.learning_rate * of.weight_decay);
  c.beta1 = static_cast<float>(of.beta1);
  c.first = static_cast<float>(1 - of.beta1);
  c.beta2 = static_cast<float>(of.beta2);
  c.second = static_cast<float>(1 - of.beta2);
  c.learning_rate = static_cast<float>(of.learning_rate);
  return c;
}

/// One element of an update.
TRAINWRIGHT_SHARED void UpdateElement(const LionCoefficients& c, float gradient, float* value,
                                      float* exp_avg) {
  const float g = gradient / c.divisor, before = *exp_avg;
  const float direction = before * c.beta1 + g * c.first;
  // Of NaN neither: it is left to the momentum to show it.
  const float step = direction > 0 ? c.learning_rate : direction < 0 ? -c.learning_rate : 0.0f;
  *value = *value * c.decay - step;
  *exp_avg = before * c.beta2 + g * c.second;
}

#undef TRAINWRIGHT_SHARED

}  // namespace trainwright
