/// How operands of GEMMs in blocks lie for micro-kernels and tiles, and a block of the result: what
/// block_matmul.cc and few_rows_product.cc share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/linear/block_matmul.h"
#include "lib/nn/linear/block_tile.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {

/// How many terms of a sum are added at once. A sum is made of parts of kPartDepth terms.
inline constexpr int64_t kBlockDepth = 512, kPartDepth = 4096;

/// How the left operand is multiplied.
enum class LeftForm {
  kPacked,   ///< rows are packed, bf16 for the micro-kernels
  kTurned,   ///< stored as its transpose: packed with its rows side by side, for tiles (block_tile.h)
  kInPlace,  ///< a row is read but once, or is short: tiles take it where it lies
};

/// The operands' elements as they are packed, and the blocks of the result.
struct BlockLayout {
  explicit BlockLayout(const BlockProduct& product);
  int64_t panel_bytes() const { return depth * kPanelColumns * element_bytes; }
  int64_t panels(const BlockProduct& product) const {
    return (product.n + kPanelColumns - 1) / kPanelColumns;
  }
  /// Packed rows of 32-bit elements of the right operand, those of padding left out.
  int64_t steps(const BlockProduct& product) const { return bf16 ? (product.k + 1) / 2 : product.k; }

  bool bf16;  ///< of the packed elements
  int64_t element_bytes;
  int64_t depth;  ///< k, padded
  LeftForm form;
  int64_t task_rows;    ///< rows that are packed and multiplied at once
  int64_t left_stride;  ///< packed elements, of 4 bytes where the operand is turned
};

/// Of an operand's element.
inline int64_t SourceBytes(const BlockProduct& product) {
  return product.bf16 ? 2 : 4;
}

/// Of an operand that tiles take where it lies.
TileTerms TermsInPlace(const BlockProduct& product);

/// Memory of a GEMM, which nothing has written.
at::Tensor Scratch(int64_t size_bytes);

/// The panels of b, one after the other, packed on the threads of at::parallel_for: each of kPanelColumns
/// columns as [depth][kPanelColumns], bf16 in pairs of rows; zeros around them.
at::Tensor PackPanels(const BlockProduct& product, const BlockLayout& layout);

/// Rows of the left operand, packed where that pays, and blocks of their products.
class LeftRows {
 public:
  /// \param product must outlive the object
  LeftRows(const BlockProduct& product, const BlockLayout& layout);
  /// The rows [begin, end), at most task_rows of them, in place of the former ones.
  void Pack(int64_t begin, int64_t end);
  /// sums [end - begin][kPanelColumns] = these rows times a panel.
  /// \param soon the panel that is multiplied next, or null
  /// \param result takes the sums where tiles compute them; its data is null: it does not
  /// \returns whether it took them
  bool Multiply(int64_t columns, const uint8_t* panel, const uint8_t* soon, const TileResult& result,
                float* sums) const;

 private:
  void PackRows(int64_t begin, int64_t rows);
  void PackTransposed(int64_t begin, int64_t rows);
  void MultiplyPairs(int64_t columns, const uint8_t* panel, float* sums) const;

  const BlockProduct& product_;
  const BlockLayout layout_;
  at::Tensor packed_;
  int64_t begin_ = 0, rows_ = 0;
};

}  // namespace trainwright::cpu
