/// The kernels that this CPU can run beside those of the baseline, for tests that compare them.
#pragma once

#include <vector>

#include "lib/nn/cpu/kernels.h"

namespace trainwright::test {

inline std::vector<const cpu::Kernels*> KernelsBesideBaseline() {
  std::vector<const cpu::Kernels*> all = {&cpu::BestKernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&cpu::kAvx2Kernels);
#endif
  return all;
}

}  // namespace trainwright::test
