/// The update of lib/nn/update/adamw_8bit.h over blocks. Torch-free, thread-safe on disjoint ranges.
#pragma once

#include <cstdint>

#include "lib/nn/update/adamw_8bit.h"

namespace trainwright::cpu {

/// \param count elements, of which the last block may have fewer than kMomentBlock
void UpdateAdamW8Bit(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                     const Moments8Bit& exp_avg, const Moments8Bit& exp_avg_sq, int64_t count);

}  // namespace trainwright::cpu
