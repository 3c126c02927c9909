#include "lib/nn/linear/gemm_kernels.h"

#include <optional>

#include "lib/base/bf16_instructions.h"
#include "lib/base/error.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright {
namespace {

struct AppliedGemms {
  CpuGemms gemms;
  std::optional<double> bf16_gain;
};

AppliedGemms& Applied() {
  static AppliedGemms applied = {UsualCpuGemms(), std::nullopt};
  return applied;
}

}  // namespace

CpuGemms UsualCpuGemms() {
  if (!cpu::HasMicroKernels(/*bf16=*/false)) return {};
  const bool fast = DetectBf16Instructions() == Bf16Instructions::kFast;
  return {CpuGemms::Fp32::kBlocks, fast ? CpuGemms::Bf16::kInstructions : CpuGemms::Bf16::kWidened};
}

CpuGemms FormerCpuGemms() {
  CpuGemms gemms = UsualCpuGemms();
  if (DetectBf16Instructions() == Bf16Instructions::kNone) gemms.bf16 = CpuGemms::Bf16::kEmulated;
  return gemms;
}

std::string WhyNotCpuGemms(const CpuGemms& gemms) {
  const bool in_blocks = gemms.fp32 == CpuGemms::Fp32::kBlocks || gemms.bf16 != CpuGemms::Bf16::kEmulated;
  if (in_blocks && !cpu::HasMicroKernels(/*bf16=*/false)) return "has no AVX-512";
  const bool instructions = gemms.bf16 == CpuGemms::Bf16::kInstructions;
  if (instructions && !cpu::HasMicroKernels(/*bf16=*/true)) return "has no instructions for bf16";
  return "";
}

const CpuGemms& ChosenCpuGemms() {
  return Applied().gemms;
}

bool IsChosenBf16Worthwhile() {
  return IsBf16Worthwhile(Applied().gemms, Applied().bf16_gain);
}

void ApplyCpuGemms(const CpuGemms& gemms, const std::optional<double>& bf16_gain) {
  TRAINWRIGHT_CHECK(WhyNotCpuGemms(gemms).empty());
  Applied() = {gemms, bf16_gain};
}

}  // namespace trainwright
