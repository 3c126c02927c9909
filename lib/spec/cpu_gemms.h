/// Which kernels compute a CPU's GEMMs, where there is a choice. Free of torch; lib/nn/linear/gemm_kernels.h
/// computes with them.
///
/// Kernels add up in different orders and round in different places, so a choice decides bits. It is one for
/// a process, and a run keeps the one that it began with.
#pragma once

#include <optional>
#include <string>

namespace trainwright {

struct CpuGemms {
  /// kBlocks: our own, in blocks, for processors with AVX-512. kLibrary: MKL's.
  enum class Fp32 { kBlocks, kLibrary };
  /// kInstructions: by the processor's instructions for bf16. kWidened: operands are bf16 in memory, and
  /// become fp32 when they are packed. kEmulated: they are fp32 in memory, holding rounded values.
  enum class Bf16 { kInstructions, kWidened, kEmulated };

  Fp32 fp32 = Fp32::kLibrary;
  Bf16 bf16 = Bf16::kEmulated;
  bool operator==(const CpuGemms&) const = default;
};

/// "fp32=blocks,bf16=widened"
std::string CpuGemmsName(const CpuGemms& gemms);

/// Whether --mixed-precision auto takes bf16 where such kernels compute, and gpu-probe recommends it: where
/// it was measured to be at least 1.1 times as fast as fp32, as less is not worth the rounding; unmeasured,
/// where it is by instructions. Never where it is emulated.
/// \param gain the rate of GEMMs in bf16 over that in fp32; nullopt: not measured
bool IsBf16Worthwhile(const CpuGemms& gemms, const std::optional<double>& gain);

/// "fp32=library", "bf16=emulated", or both with a comma between.
/// \param flag for messages
/// \param gemms what the text does not say stays
/// \throws Error{kUsage} on anything else
CpuGemms ParseCpuGemms(const std::string& text, const std::string& flag, CpuGemms gemms);

}  // namespace trainwright
