#include "lib/nn/update/lion_cpu.h"

namespace trainwright::cpu {

void UpdateLion(const LionCoefficients& coefficients, const float* gradients, float* values, float* exp_avg,
                int64_t count) {
  const LionCoefficients c = coefficients;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) UpdateElement(c, gradients[i], &values[i], &exp_avg[i]);
}

}  // namespace trainwright::cpu
