#include "lib/nn/linear/quantized_product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/block_matmul.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/linear/thin_product.h"

namespace trainwright {
namespace {

/// Dequantised at once: of many rows, and of few on each thread.
constexpr int64_t kPartElements = int64_t{2} << 20, kPartUnit = 64, kThinColumns = 16;

/// Rows [begin, begin + rows of the tile) of matrices one below the other.
void DequantizeInto(const Numerics& numerics, const std::vector<const QuantizedMatrix*>& weights,
                    int64_t begin, at::Tensor& tile) {
  int64_t top = 0;
  for (const QuantizedMatrix* weight : weights) {
    const int64_t first = std::max(begin, top), last = std::min(begin + tile.size(0), top + weight->rows());
    if (first < last) {
      at::Tensor rows = tile.narrow(0, first - begin, last - first);
      weight->DequantizeRows(numerics, first - top, rows);
    }
    top += weight->rows();
  }
}

void MultiplyTiles(const Numerics& numerics, const QuantizedMatrix& weight, const at::Tensor& a_mk,
                   at::Tensor& out_mn) {
  at::parallel_for(0, (weight.rows() + kThinColumns - 1) / kThinColumns, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor tiles = at::empty({kThinColumns, weight.depth()}, numerics.storage);
    for (int64_t column = begin * kThinColumns; column < std::min(end * kThinColumns, weight.rows());
         column += kThinColumns) {
      at::Tensor tile = tiles.narrow(0, 0, std::min(kThinColumns, weight.rows() - column));
      at::Tensor out = out_mn.narrow(1, column, tile.size(0));
      weight.DequantizeRows(numerics, column, tile);
      Matmul(a_mk, tile.t(), out);
    }
  });
}

/// As Matmul, but of small matrices a few rows at a time: Matmul leaves those to a library, whose bits may
/// depend on threads (those of MKL do on AMD's processors).
void MultiplyRows(const at::Tensor& a_mk, const at::Tensor& w_nk, at::Tensor& out_mn) {
  const int64_t rows = a_mk.size(0);
  const bool small = rows <= cpu::kMostQuantizedRows && out_mn.numel() * a_mk.size(1) < cpu::kLeastBlockTerms;
  const int64_t most = small ? cpu::kMostThinRows : rows;
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    at::Tensor out = out_mn.narrow(0, row, count);
    Matmul(a_mk.narrow(0, row, count), w_nk.t(), out);
  }
}

void MultiplyParts(const Numerics& numerics, const std::vector<const QuantizedMatrix*>& weights,
                   const at::Tensor& a_mk, at::Tensor& out_mn) {
  const int64_t depth = a_mk.size(1), columns = out_mn.size(1);
  const int64_t parts = std::max<int64_t>(1, (columns * depth + kPartElements - 1) / kPartElements);
  const int64_t most = ((columns + parts - 1) / parts + kPartUnit - 1) / kPartUnit * kPartUnit;
  const at::Tensor tiles = at::empty({std::min(most, columns), depth}, numerics.storage);
  for (int64_t begin = 0; begin < columns; begin += most) {
    at::Tensor tile = tiles.narrow(0, 0, std::min(most, columns - begin));
    DequantizeInto(numerics, weights, begin, tile);
    at::Tensor out = out_mn.narrow(1, begin, tile.size(0));
    MultiplyRows(a_mk, tile, out);
  }
}

}  // namespace

void MultiplyQuantized(const Numerics& numerics, const std::vector<const QuantizedMatrix*>& weights,
                       const at::Tensor& a_mk, at::Tensor& out_mn) {
  if (out_mn.numel() == 0) return;
  OpaqueProfileScope scope("matmul_quantized", ProfilePart::kGemm);
  scope.Count(2 * out_mn.numel() * a_mk.size(1));
  const at::Tensor a = a_mk.contiguous();
  if (a.size(0) > cpu::kMostQuantizedRows) return MultiplyParts(numerics, weights, a, out_mn);
  int64_t column = 0;
  for (const QuantizedMatrix* weight : weights) {
    at::Tensor columns = out_mn.narrow(1, column, weight->rows());
    column += weight->rows();
    if (weight->MultiplyThin(a, columns)) continue;
    if (a.size(0) > cpu::kMostThinRows) return MultiplyParts(numerics, weights, a, out_mn);
    MultiplyTiles(numerics, *weight, a, columns);
  }
}

bool MultiplyThinInFp32(
    const at::Tensor& a_mk, at::Tensor& out_mn,
    const std::function<void(const cpu::ThinRows& rows, int64_t begin, int64_t end)>& compute) {
  const at::Tensor a = a_mk.to(at::kFloat).contiguous();
  const bool direct = out_mn.scalar_type() == at::kFloat && out_mn.stride(1) == 1;
  at::Tensor sums = direct ? out_mn : at::empty(out_mn.sizes(), at::kFloat);
  const cpu::ThinRows rows = {.rows = a.size(0),
                              .depth = a.size(1),
                              .a = a.const_data_ptr<float>(),
                              .out = sums.mutable_data_ptr<float>(),
                              .out_stride = sums.stride(0)};
  constexpr int64_t kElementsAThread = 32768;
  at::parallel_for(0, out_mn.size(1), kElementsAThread / (rows.depth + 1) + 1,
                   [&](int64_t begin, int64_t end) { compute(rows, begin, end); });
  if (!direct) out_mn.copy_(sums);
  return true;
}

}  // namespace trainwright
