#include "lib/nn/activation/dropout_factors.h"

#include "lib/nn/mix_bits.h"

namespace trainwright::cpu {
namespace {

[[gnu::always_inline]] inline void Factors(uint64_t key, uint64_t first, int64_t pairs, uint32_t threshold,
                                           float scale, float* factors) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    const uint64_t bits = CounterBits(key, first + static_cast<uint64_t>(i));
    factors[2 * i] = static_cast<uint32_t>(bits) < threshold ? 0.0f : scale;
    factors[2 * i + 1] = static_cast<uint32_t>(bits >> 32) < threshold ? 0.0f : scale;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) void FactorsAvx512(
    uint64_t key, uint64_t first, int64_t pairs, uint32_t threshold, float scale, float* factors) {
  Factors(key, first, pairs, threshold, scale, factors);
}
#endif

}  // namespace

void DropoutFactors(uint64_t key, uint64_t first, int64_t pairs, uint32_t threshold, float scale,
                    float* factors) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return FactorsAvx512(key, first, pairs, threshold, scale, factors);
  }
#endif
  Factors(key, first, pairs, threshold, scale, factors);
}

}  // namespace trainwright::cpu
