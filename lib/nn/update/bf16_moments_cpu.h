/// The update of lib/nn/update/bf16_moments.h over ranges of elements: compiled once an instruction set, with
/// the same bits on all of them, because no multiplication is fused with an addition and every operation is
/// rounded alone. Torch-free, thread-safe on disjoint ranges.
#pragma once

#include <cstdint>

#include "lib/nn/update/bf16_moments.h"

namespace trainwright::cpu {

/// Updates `count` elements, of which `first` is the place in the flat buffers of the first: the random bits
/// are its.
using Bf16MomentsKernel = void (*)(const AdamWCoefficients& coefficients, const float* gradients,
                                   float* values, uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t first,
                                   int64_t count);

void UpdateBf16MomentsBaseline(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                               uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t first, int64_t count);
#if defined(__x86_64__)
void UpdateBf16MomentsAvx2(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                           uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t first, int64_t count);
void UpdateBf16MomentsAvx512(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                             uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t first, int64_t count);
#endif

/// The fastest that this processor has.
Bf16MomentsKernel BestBf16MomentsKernel();

}  // namespace trainwright::cpu
