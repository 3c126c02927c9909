/// GEMMs in cache-sized blocks: by tiles of our own (block_tile.h), or in bf16 by oneDNN's micro-kernels
/// where those are as fast; lib/nn/linear/matmul.h says why and how exactly.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// A matrix in memory: element (i, j) lies at data[i * stride + j], or at data[j * stride + i] when it is
/// stored as its transpose.
struct MatrixView {
  const void* data = nullptr;
  int64_t stride = 0;  ///< elements
  bool transposed = false;
};

/// out [m, n] = a [m, k] b [k, n].
struct BlockProduct {
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;  ///< of a and b; else fp32
  MatrixView a, b;
  void* out = nullptr;
  int64_t out_stride = 0;
  bool out_bf16 = false;
  bool accumulate = false;  ///< out +=
  bool widens = false;  ///< bf16 operands become fp32 when they are packed or taken, and are multiplied so
};

/// Multiplications of the smallest GEMM that gains by blocks.
inline constexpr int64_t kLeastBlockTerms = int64_t{1} << 18;

/// Computes the GEMM on the threads of at::parallel_for. Takes scratch memory of a few
/// times 10 MB at most.
/// \returns false, and does nothing, when the processor has no micro-kernels, the GEMM is too small to
///     gain or its bf16 pairs are split
bool BlockMatmul(const BlockProduct& product);

}  // namespace trainwright::cpu
