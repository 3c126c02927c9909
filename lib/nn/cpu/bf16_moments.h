/// The update of lib/nn/bf16_moments.h over ranges of elements: compiled once an instruction set, with the
/// same bits on all of them, because no product is contracted with a sum and every operation is rounded
/// alone. Torch-free, thread-safe on disjoint ranges.
#pragma once

#include <cstdint>

#include "lib/nn/bf16_moments.h"

namespace trainwright::cpu {

/// Updates the elements [begin, end) of flat buffers.
using Bf16MomentsKernel = void (*)(const AdamWCoefficients& coefficients, const float* gradients,
                                   float* values, uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t begin,
                                   int64_t end);

void UpdateBf16MomentsBaseline(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                               uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t begin, int64_t end);
#if defined(__x86_64__)
void UpdateBf16MomentsAvx2(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                           uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t begin, int64_t end);
void UpdateBf16MomentsAvx512(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                             uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t begin, int64_t end);
#endif

/// The fastest that this processor has.
Bf16MomentsKernel BestBf16MomentsKernel();

}  // namespace trainwright::cpu
