/// The body of bf16_moments.h. Included once by each bf16_moments_<set>.cc, which defines TRAINWRIGHT_UPDATE
/// (the name of the function) and switches the compiler to its instruction set. The compiler vectorises the
/// loop.
#include "lib/nn/update/bf16_moments_cpu.h"

namespace trainwright::cpu {

void TRAINWRIGHT_UPDATE(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                        uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t first, int64_t count) {
  const AdamWCoefficients c = coefficients;
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    const uint64_t key = RandomBlockKey(c.key, first + begin);
    const int64_t in_block = (first + begin) % kRandomBlock, left_in_block = kRandomBlock - in_block;
    end = count - begin < left_in_block ? count : begin + left_in_block;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      UpdateElement(c, RandomBits(key, static_cast<uint32_t>(in_block + i - begin)), gradients[i], &values[i],
                    &exp_avg[i], &exp_avg_sq[i]);
    }
  }
}

}  // namespace trainwright::cpu
