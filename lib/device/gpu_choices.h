/// What a user chooses for the whole process about computing on a GPU: how fp32 GEMMs round, whether
/// reruns give equal bits, and how torch's allocator works. None of it has an effect on a CPU.
///
/// Only SetUpProcess (process_setup.h) calls the functions that change the process.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

struct GpuChoices {
  /// fp32 GEMMs round their inputs to TF32 (10 bits of mantissa, 8 of exponent); without, fp32 is fp32.
  bool tf32 = false;
  /// Only algorithms that give the same bits every time; torch throws where it has none.
  bool deterministic = false;
  /// Of torch's allocator, as CheckAllocatorConf takes it (lib/run/allocator_conf.h); empty: as in
  /// the environment.
  std::string allocator_conf;
};

/// Sets variables that CUDA's libraries read when they are loaded: before that, and before there are threads.
/// Called again with the same choices it leaves the environment alone.
void PrepareGpuChoices(const GpuChoices& choices);

/// Passes the rest to torch, where there is a GPU.
void ApplyGpuChoices(const GpuChoices& choices);

/// A sentence for each choice that was made and has no effect on a CPU.
std::vector<std::string> ChoicesWithoutGpu(const GpuChoices& choices);

}  // namespace trainwright
