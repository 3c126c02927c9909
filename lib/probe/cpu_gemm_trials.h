/// How fast each kind of kernels multiplies matrices on this CPU, and which are to be taken for that.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/spec/cpu_gemms.h"

namespace trainwright {

/// Floating-point operations a second, by what ParseCpuGemms takes: "fp32=blocks", "fp32=library",
/// "bf16=instructions", "bf16=widened".
using CpuGemmRates = std::map<std::string, double>;

struct CpuGemmTrials {
  double time_s = 0.3;  ///< after each has computed once
  int least_rounds = 3;
};

/// The kinds that the processor has, by turns, by the process's threads: the best of each. Takes some tens of
/// megabytes, and on a slow processor longer than it is given.
CpuGemmRates MeasureCpuGemms(const CpuGemmTrials& trials = {});

/// The usual kinds, but for each type another that is at least 1.15 times as fast; of bf16 the fastest, where
/// the usual one is slower than fp32; and bf16 emulated where that is slower than 0.9 times fp32. Within
/// these bounds what is measured on a busy machine does not change bits.
/// \param rates what has none was not measured, and is not taken
CpuGemms FastestCpuGemms(const CpuGemms& usual, const CpuGemmRates& rates);

inline constexpr double kPartsOfGain = 1e6;
/// How many times as fast in bf16 as in fp32 such kernels are, a whole number of millionths, by which ranks
/// share it; nullopt where one of the two has no rate.
std::optional<double> GainOfBf16(const CpuGemms& gemms, const CpuGemmRates& rates);

}  // namespace trainwright
