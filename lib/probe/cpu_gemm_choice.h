/// The kernels of GEMMs that --kernels asks for: measured once a machine, usual for its kind, or named.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/base/log.h"
#include "lib/probe/cpu_gemm_cache.h"
#include "lib/probe/cpu_gemm_trials.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {

struct CpuGemmRequest {
  std::string kernels = "auto";  ///< of --kernels: "auto", "usual", or as ParseCpuGemms takes it
  bool measures = true;          ///< where not, auto is usual: no clock decides
  /// Asked where the cache is looked into alone: a machine with many processors takes milliseconds to answer.
  std::function<CpuGemmMachine()> machine;
  std::string cache_path;  ///< empty: nothing is remembered
  std::function<CpuGemmRates()> measure = [] { return MeasureCpuGemms(); };
  std::function<void(const std::string&)> announce = LogInfo;  ///< what was measured
};

/// Whether it is a list.
bool NamesKernels(const std::string& kernels);

/// \throws Error{kUsage} on another text; names --kernels
void CheckKernelsOption(const std::string& kernels);

/// What auto has not measured on this machine it measures, which is reported, and remembers: where that
/// cannot be stored, there is a warning. A kind that is left out of a list is the usual one. Where there is
/// nothing to choose from, nothing is measured.
/// \param bf16_gain gets GainOfBf16 of them where auto measured, now or before; may be null
/// \throws Error{kUsage} as CheckKernelsOption, and on kernels that the processor lacks
CpuGemms ChooseCpuGemms(const CpuGemmRequest& request, std::optional<double>* bf16_gain = nullptr);

}  // namespace trainwright
