/// The update of lib/nn/update/lion.h over a range of elements, vectorised by the compiler; no multiplication
/// is fused with an addition, so that cuts of a range change no bit. Torch-free, thread-safe on disjoint
/// ranges.
#pragma once

#include <cstdint>

#include "lib/nn/update/lion.h"

namespace trainwright::cpu {

void UpdateLion(const LionCoefficients& coefficients, const float* gradients, float* values, float* exp_avg,
                int64_t count);

}  // namespace trainwright::cpu
