/// Which kernels compute a CPU's GEMMs, where there is a choice. Free of torch; lib/nn/linear/gemm_kernels.h
/// computes with them.
///
/// Kernels add up in different orders and round in different places, so a choice decides bits. It is one for
/// a process, and a run keeps the one that it began with.
#pragma once

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

/// "fp32=library", "bf16=emulated", or both with a comma between.
/// \param flag for messages
/// \param gemms what the text does not say stays
/// \throws Error{kUsage} on anything else
CpuGemms ParseCpuGemms(const std::string& text, const std::string& flag, CpuGemms gemms);

}  // namespace trainwright
