/// Which kernels for GEMMs were measured to be fastest on a machine: one file a user, that all tools read.
///
///   {"schema": "trainwright.kernels/1", "machines": [{"cpu": "...", "capability": "AVX512+BF16 AMD",
///     "threads": 2, "build": "0.1.0 Release GNU 12.2.0 kernels 5f0c2d1e9a7b4c36", "torch": "...",
///     "kernels": "fp32=blocks,bf16=instructions",
///     "flops_per_s": {"fp32=blocks": 1.8e11, ...}, "measured": "2026-11-29T15:04:05Z"}, ...]}
///
/// The build is named by the sources of its kernels: other ones are measured again, and all tools of one
/// build go by the same entry. The file is no more than a memory of what can be measured again: one that
/// cannot be read counts as empty, and is replaced. Of two processes that write at once, one's entry may be
/// lost.
#pragma once

#include <optional>
#include <string>

#include "lib/probe/cpu_gemm_trials.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {

/// What may make other kernels the fastest.
struct CpuGemmMachine {
  std::string cpu;         ///< the processor's name
  std::string capability;  ///< of CpuCapability()
  int threads = 1;
  std::string build, torch;  ///< of this suite, with the sources of its kernels, and of LibTorch
  bool operator==(const CpuGemmMachine&) const = default;
};
/// This one.
CpuGemmMachine ThisCpuGemmMachine(int threads);

struct MeasuredCpuGemms {
  CpuGemms gemms;
  CpuGemmRates rates;
  std::string measured;  ///< when, as Rfc3339Now
};

/// $XDG_CACHE_HOME/trainwright/kernels.json, or below $HOME/.cache; empty where there is neither.
std::string CpuGemmCachePath();

/// \param path empty, or of a file that need not exist
/// \returns nullopt: the machine has no entry that can be read
std::optional<MeasuredCpuGemms> FindCpuGemms(const std::string& path, const CpuGemmMachine& machine);

/// Replaces the machine's entry, and makes the folder. Of the entries the last 64 are kept.
/// \throws Error{kIo}
void StoreCpuGemms(const std::string& path, const CpuGemmMachine& machine, const MeasuredCpuGemms& measured);

}  // namespace trainwright
