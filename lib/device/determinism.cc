#include "lib/device/determinism.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sched.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace trainwright {

void PrepareDeterminism() {
  setenv("MKL_CBWR", "AUTO,STRICT", /*overwrite=*/0);
}

int SetComputeThreads(int threads) {
  at::set_num_threads(threads > 0 ? threads : UsablePhysicalCores());
  return at::get_num_threads();
}

int UsablePhysicalCores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return 1;
  // Hyper-threads of one core list the same siblings.
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (!std::getline(file, siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

std::string CpuCapability() {
  std::string capability = at::get_cpu_capability();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) capability += "+BF16";
  if (__builtin_cpu_supports("avx512fp16")) capability += "+FP16";
  if (__builtin_cpu_supports("amx-bf16")) capability += "+AMX";
  // MKL chooses its kernels by the maker, too.
  capability += __builtin_cpu_is("amd") ? " AMD" : __builtin_cpu_is("intel") ? " Intel" : "";
#endif
  return capability;
}

std::string TorchBuild() {
  std::string build = "torch " TORCH_VERSION;
  build += ", " + at::get_mkl_version();
  return build;
}

}  // namespace trainwright
