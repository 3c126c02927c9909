#include "lib/device/determinism.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sched.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace trainwright {
namespace {

constexpr char kMkl[] = "MKL_CBWR=AUTO,STRICT";
/// libgomp's threads spin for milliseconds before they sleep; next to other work that takes the very cores
/// that the awaited thread needs (measured on two busy cores: four times the time). 1000 turns are some 15
/// microseconds.
constexpr char kSpin[] = "GOMP_SPINCOUNT=1000";

bool IsSet(char** environment, const char* name) {
  for (; *environment != nullptr; ++environment) {
    const char *a = *environment, *b = name;
    while (*b != '\0' && *b != '=' && *a == *b) ++a, ++b;
    if ((*b == '\0' || *b == '=') && *a == '=') return true;
  }
  return false;
}

/// Starts the program again with the variables above, unless the user set them. libgomp reads its own before
/// main, so this runs before the constructors of all libraries, which are what makes torch slow to start: it
/// costs some milliseconds. Nothing but system calls may be used here. When it fails the program goes on
/// without.
void RestartWithEnvironment(int, char** argv, char** environment) {
  const char* added[2];
  int count = 0;
  if (!IsSet(environment, kMkl)) added[count++] = kMkl;
  if (!IsSet(environment, kSpin) && !IsSet(environment, "OMP_WAIT_POLICY")) added[count++] = kSpin;
  if (count == 0) return;
  constexpr int kMostVariables = 4096;
  char* variables[kMostVariables];
  int size = 0;
  for (; environment[size] != nullptr; ++size) {
    if (size + 3 >= kMostVariables) return;
    variables[size] = environment[size];
  }
  for (int i = 0; i < count; ++i) variables[size++] = const_cast<char*>(added[i]);
  variables[size] = nullptr;
  char path[4096];  // the name itself: a process that runs /proc/self/exe is called "exe"
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return;
  path[length] = '\0';
  execve(path, argv, variables);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kRestart)(int, char**,
                                                                     char**) = RestartWithEnvironment;

}  // namespace

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
