/// The kernels by which this process computes GEMMs on its CPU: those usual for the processor, or others that
/// its main has chosen (lib/spec/cpu_gemms.h).
#pragma once

#include <optional>
#include <string>

#include "lib/spec/cpu_gemms.h"

namespace trainwright {

/// fp32 by blocks where the processor has AVX-512, and bf16 by instructions where it is known to be fast at
/// that (lib/base/bf16_instructions.h), else widened; without AVX-512 fp32 by the library, and bf16 emulated.
/// The same whenever it is asked.
CpuGemms UsualCpuGemms();
/// What runs of before there was a choice were computed by: without instructions for bf16 it was emulated.
CpuGemms FormerCpuGemms();

/// What of these kernels this processor lacks, as a sentence without its subject: "has no instructions for
/// bf16"; empty: nothing.
std::string WhyNotCpuGemms(const CpuGemms& gemms);

/// Those in force. Thread-safe.
const CpuGemms& ChosenCpuGemms();
/// Whether bf16 by them is worth its rounding: see IsBf16Worthwhile. Thread-safe.
bool IsChosenBf16Worthwhile();

/// For mains, as SetUpProcess: once, before anything is computed. It holds for the life of the process.
/// \pre the processor has them
/// \param bf16_gain as of IsBf16Worthwhile
void ApplyCpuGemms(const CpuGemms& gemms, const std::optional<double>& bf16_gain = {});

}  // namespace trainwright
