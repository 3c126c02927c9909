/// The body of bf16_moments.h. Included once by each bf16_moments_<set>.cc, which defines TRAINWRIGHT_UPDATE
/// (the name of the function) and switches the compiler to its instruction set. The compiler vectorises the
/// loop.
#include "lib/nn/cpu/bf16_moments.h"

namespace trainwright::cpu {

void TRAINWRIGHT_UPDATE(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                        uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t begin, int64_t end) {
  const AdamWCoefficients c = coefficients;
  while (begin < end) {
    const uint64_t key = RandomBlockKey(c.key, begin);
    const int64_t block = begin / kRandomBlock * kRandomBlock;
    const int64_t block_end = end < block + kRandomBlock ? end : block + kRandomBlock;
#pragma omp simd
    for (int64_t i = begin; i < block_end; ++i) {
      UpdateElement(c, RandomBits(key, static_cast<uint32_t>(i - block)), gradients[i], &values[i],
                    &exp_avg[i], &exp_avg_sq[i]);
    }
    begin = block_end;
  }
}

}  // namespace trainwright::cpu
