/// Factors of dropout: see lib/nn/activation/dropout.h. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// factors[i] = scale where element i is kept, else 0, for the elements of counters [first, first + pairs),
/// two each. Every instruction set gives the same.
/// \param threshold elements whose bits are below it are dropped
void DropoutFactors(uint64_t key, uint64_t first, int64_t pairs, uint32_t threshold, float scale,
                    float* factors);

}  // namespace trainwright::cpu
