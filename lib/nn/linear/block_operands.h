/// How operands of GEMMs in blocks lie for the micro-kernels, and a block of the result: what
/// block_matmul.cc and few_rows_product.cc share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/linear/block_matmul.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {

/// Rows of a block of the result, which is 64 x 64 in fp32 and stays in the first-level cache, and how many
/// terms of its sums are added at once. A sum is made of parts of kPartDepth terms.
inline constexpr int64_t kBlockRows = 64, kBlockDepth = 512, kPartDepth = 4096;

/// The operands' elements, in the layout of the micro-kernels.
struct BlockLayout {
  explicit BlockLayout(const BlockProduct& product);
  /// Of packed rows of the left operand.
  int64_t left_bytes(int64_t rows) const { return rows * left_stride * element_bytes; }
  int64_t panel_bytes() const { return depth * kPanelColumns * element_bytes; }

  bool bf16;  ///< of the packed elements
  int64_t element_bytes;
  int64_t depth;  ///< k, padded
  int64_t left_stride;
};

/// Of an operand's element.
inline int64_t SourceBytes(const BlockProduct& product) {
  return product.bf16 ? 2 : 4;
}

/// Memory of a GEMM, which nothing has written.
at::Tensor Scratch(int64_t size_bytes);

/// Rows [begin, end) of a, contiguous, padded with zeros to kRowUnit rows and to the layout's depth.
void PackLeft(const BlockProduct& product, const BlockLayout& layout, int64_t begin, int64_t end,
              uint8_t* packed);
/// Columns of b from `begin` on, as [depth][kPanelColumns], bf16 in pairs of rows; zeros around them.
void PackRight(const BlockProduct& product, const BlockLayout& layout, int64_t begin, uint8_t* packed);

/// block [rows][kPanelColumns] = left right, over the layout's depth.
/// \param left_stride elements
void MultiplyBlock(const BlockLayout& layout, int64_t rows, int64_t columns, const uint8_t* left,
                   int64_t left_stride, const uint8_t* right, float* block);

}  // namespace trainwright::cpu
