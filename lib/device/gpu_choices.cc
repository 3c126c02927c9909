#include "lib/device/gpu_choices.h"

#include <ATen/Context.h>

#include <cstdlib>
#include <string>

namespace trainwright {
namespace {

/// Where it has that value already, as in all calls but the first, nothing is written that a thread may be
/// reading.
void SetVariable(const char* name, const std::string& value) {
  const char* const present = std::getenv(name);
  if (present == nullptr || value != present) setenv(name, value.c_str(), /*overwrite=*/1);
}

}  // namespace

void PrepareGpuChoices(const GpuChoices& choices) {
  if (!choices.allocator_conf.empty()) {
    SetVariable("PYTORCH_CUDA_ALLOC_CONF", choices.allocator_conf);
    SetVariable("PYTORCH_ALLOC_CONF", choices.allocator_conf);  // goes before the other
  }
  // cuBLAS gives the same bits on every run only with a workspace of its own for each stream; a value of the
  // user's is kept.
  if (choices.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

void ApplyGpuChoices(const GpuChoices& choices) {
  at::globalContext().setAllowTF32CuBLAS(choices.tf32);
  // Sums whose depth cuBLAS divides are combined in fp32, as those of our own calls: torch lets them round.
  at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  if (!choices.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Every tensor is written before it is read, so that filling it first would only cost time.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

std::vector<std::string> ChoicesWithoutGpu(const GpuChoices& choices) {
  std::vector<std::string> sentences;
  if (choices.tf32) sentences.emplace_back("--tf32 on has no effect on a CPU, where fp32 is fp32");
  if (choices.deterministic) {
    sentences.emplace_back(
        "--deterministic has no effect on a CPU, where reruns are equal bit for bit anyway");
  }
  if (!choices.allocator_conf.empty()) {
    sentences.emplace_back("--alloc-conf has no effect on a CPU: it is for the allocator of GPU memory");
  }
  return sentences;
}

}  // namespace trainwright
