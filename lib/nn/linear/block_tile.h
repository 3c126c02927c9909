/// Blocks of a GEMM's result by AVX-512, their sums in registers: elements of the left operand are broadcast,
/// wherever they lie, and multiplied with rows of the packed right one. The next part of that is fetched
/// meanwhile: from a third-level cache it comes at half the rate at which a tile takes it (a Xeon).
///
/// Numerics: those of oneDNN's micro-kernels (micro_kernel.h), bit for bit but for the sign of a zero:
/// kBlockDepth terms are summed one after the other, by fused operations from zero on, and then added to
/// those before.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// What 32 bits of the left operand, a step, are.
enum class TileTerms {
  kFp32,
  kPairs,    ///< two terms in bf16, multiplied and added by one instruction
  kWidened,  ///< two terms in bf16, which become fp32 as the right operand has
};

/// Whether this processor has the instructions, and the micro-kernels take them, too: for bf16 they take AMX
/// where there is any.
bool HasTiles(TileTerms terms);

/// Where results go, in rows of whole vectors.
struct TileResult {
  float* data = nullptr;
  int64_t stride = 0;  ///< elements
  bool adds = false;   ///< to what is there
};

/// sums [rows][kPanelColumns] = left [rows, steps] right [steps, columns].
struct TileBlock {
  TileTerms terms = TileTerms::kFp32;
  const uint8_t* left = nullptr;
  int64_t left_stride_bytes = 0;  ///< between rows, whose steps are contiguous; or between steps
  bool left_transposed = false;   ///< rows are contiguous; of kFp32 and kPairs alone
  const float* right = nullptr;   ///< [steps][kPanelColumns], of kWidened twice as many rows
  int64_t rows = 0, columns = 0, steps = 0;
  const float* soon = nullptr;  ///< the right operand of what is computed next, or null
  bool fetches = false;         ///< rows of the left operand after those of the block are read soon
  float* sums = nullptr;
  TileResult result;  ///< where they go instead, columns being whole vectors of 16; or nowhere else
};
void ComputeTiles(const TileBlock& block);

}  // namespace trainwright::cpu
