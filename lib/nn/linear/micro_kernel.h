/// oneDNN's micro-kernels (brgemm), which LibTorch carries: one small GEMM on one thread, its operands in
/// the first- and second-level cache. What is built from them: block_matmul.h, block_attention.h.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// Columns of a packed right operand.
inline constexpr int64_t kPanelColumns = 64;
/// Depths and rows are padded to multiples of these with zeros: each shape makes oneDNN compile a kernel.
inline constexpr int64_t kDepthUnit = 32, kRowUnit = 16;

inline int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Whether this processor has them for fp32, or bf16.
bool HasMicroKernels(bool bf16);

/// Whether operands in bf16 are to become fp32 when they are packed (lib/nn/linear/gemm_kernels.h).
bool WidensBf16();

/// out [rows, columns] fp32 = left [rows, depth] right [depth, columns], or +=.
/// \param left rows of fp32 or bf16, left_stride elements apart
/// \param right fp32 rows; bf16 as pairs of rows, element by element (Kernels::interleave_pairs)
struct MicroProduct {
  bool bf16 = false;
  int64_t rows = 0, columns = 0, depth = 0;
  const void* left = nullptr;
  int64_t left_stride = 0;
  const void* right = nullptr;
  int64_t right_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  bool accumulate = false;
};
void Multiply(const MicroProduct& product);

/// Gives back the tile registers that bf16 kernels take on processors with AMX; at the end of a thread's
/// part.
void ReleaseMicroKernels(bool bf16);

}  // namespace trainwright::cpu
