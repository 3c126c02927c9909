#include "lib/device/determinism.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sched.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/bf16_instructions.h"

namespace trainwright {

namespace {

/// Starts so many threads and ends them: for one that it does not get, OpenMP ends the process, and another
/// pool of torch's waits forever.
void ProveThreads(int count) {
  std::promise<void> all_started;
  const std::shared_future<void> started = all_started.get_future().share();
  std::vector<std::jthread> threads;
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([started] { started.wait(); });
  } catch (...) {
    all_started.set_value();
    throw;
  }
  all_started.set_value();
}

}  // namespace

void PrepareDeterminism() {
  setenv("MKL_CBWR", "AUTO,STRICT", /*overwrite=*/0);
}

int SetComputeThreads(int threads) {
  const int count = threads > 0 ? threads : UsablePhysicalCores();
  ProveThreads(2 * count);  // torch has two pools of them
  at::set_num_threads(count);
  at::parallel_for(0, at::get_num_threads(), 1, [](int64_t, int64_t) {});  // makes OpenMP's
  return at::get_num_threads();
}

std::vector<int> UsableCores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return {0};
  std::set<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    int first_sibling = cpu;  // of a list as "3,35" or "6-7"
    if (!(file >> first_sibling)) first_sibling = cpu;
    cores.insert(first_sibling);
  }
  if (cores.empty()) cores.insert(0);
  return std::vector<int>(cores.begin(), cores.end());
}

int UsablePhysicalCores() {
  return static_cast<int>(UsableCores().size());
}

std::string CpuCapability() {
  std::string capability = at::get_cpu_capability();
#if defined(__x86_64__)
  switch (DetectBf16Instructions()) {
    case Bf16Instructions::kNone:
      break;
    case Bf16Instructions::kSlow:
      capability += "+BF16W";  // widened to fp32
      break;
    case Bf16Instructions::kFast:
      capability += "+BF16";
      break;
  }
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
