#include "lib/nn/linear/few_rows_product.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/linear/block_operands.h"
#include "lib/nn/linear/block_tile.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {
namespace {

/// out^T = b^T a^T; out is still that of `product`.
BlockProduct Transposed(const BlockProduct& product) {
  BlockProduct transposed = product;
  transposed.m = product.n;
  transposed.n = product.m;
  transposed.a = {product.b.data, product.b.stride, !product.b.transposed};
  transposed.b = {product.a.data, product.a.stride, !product.a.transposed};
  return transposed;
}

class FewRows {
 public:
  explicit FewRows(const BlockProduct& product)
      : product_(Transposed(product)), layout_(product_), right_(PackPanels(product_, layout_)) {}

  void Multiply() const {
    const int64_t units = (product_.m + kUnitRows - 1) / kUnitRows;
    at::parallel_for(0, units, 1, [&](int64_t begin, int64_t end) {
      const int64_t end_row = std::min(product_.m, end * kUnitRows);
      for (int64_t row = begin * kUnitRows; row < end_row; row += kRows) {
        MultiplyRows(row, std::min(kRows, end_row - row));
      }
    });
  }

 private:
  /// Of a block, of which tiles of every width are a part, and the unit of a thread's work.
  static constexpr int64_t kRows = 48, kUnitRows = 16;

  void MultiplyRows(int64_t row, int64_t rows) const {
    const int64_t row_bytes = product_.a.stride * SourceBytes(product_);
    alignas(64) float sums[kRows * kPanelColumns], turned[kPanelColumns * kRows];
    const auto* panels = right_.const_data_ptr<uint8_t>();
    for (int64_t panel = 0; panel < layout_.panels(product_); ++panel) {
      const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, product_.n - column);
      ComputeTiles({.terms = TermsInPlace(product_),
                    .left = static_cast<const uint8_t*>(product_.a.data) + row * row_bytes,
                    .left_stride_bytes = row_bytes,
                    .right = reinterpret_cast<const float*>(panels + panel * layout_.panel_bytes()),
                    .rows = rows,
                    .columns = columns,
                    .steps = product_.k * SourceBytes(product_) / 4,
                    .fetches = panel == 0,
                    .sums = sums});
      BestKernels().transpose(reinterpret_cast<const uint32_t*>(sums), kPanelColumns, rows, columns,
                              reinterpret_cast<uint32_t*>(turned), kRows);
      BestKernels().store_tile(product_.out_bf16 ? Codec::kBf16 : Codec::kFp32, turned, kRows, columns, rows,
                               static_cast<uint8_t*>(product_.out) +
                                   (column * product_.out_stride + row) * (product_.out_bf16 ? 2 : 4),
                               product_.out_stride, product_.accumulate);
    }
  }

  BlockProduct product_;  ///< transposed
  BlockLayout layout_;
  at::Tensor right_;
};

}  // namespace

bool MultiplyFewRows(const BlockProduct& product) {
  if (product.m > kMostFewRows || product.a.transposed || !product.b.transposed) return false;
  // Of as few columns, the rows are taken where they lie, by as many threads (LeftForm::kInPlace).
  if (product.n <= kPanelColumns) return false;
  if (!HasTiles(TermsInPlace(product))) return false;
  // Pairs are elements of 32 bits where they are transposed.
  if (product.bf16 && (product.k % 2 != 0 || (!product.widens && product.a.stride % 2 != 0))) return false;
  FewRows(product).Multiply();
  return true;
}

}  // namespace trainwright::cpu
