#include "lib/codec/cpu/kernels.h"

#include <array>

namespace trainwright::codec {

std::span<const Kernels* const> SupportedKernels() {
#if defined(__x86_64__)
  static constexpr std::array<const Kernels*, 3> kAll = {&kBaselineKernels, &kAvx2Kernels, &kAvx512Kernels};
  static const size_t supported = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("popcnt")) return 1;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vbmi")) {
      return 2;
    }
    return 3;
  }();
#else
  static constexpr std::array<const Kernels*, 1> kAll = {&kBaselineKernels};
  static constexpr size_t supported = 1;
#endif
  return std::span(kAll).first(supported);
}

}  // namespace trainwright::codec
