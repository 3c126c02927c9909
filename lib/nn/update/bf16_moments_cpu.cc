#include "lib/nn/update/bf16_moments_cpu.h"

namespace trainwright::cpu {

Bf16MomentsKernel BestBf16MomentsKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return UpdateBf16MomentsAvx512;
  }
  if (__builtin_cpu_supports("avx2")) return UpdateBf16MomentsAvx2;
#endif
  return UpdateBf16MomentsBaseline;
}

}  // namespace trainwright::cpu
