#include "lib/nn/linear/few_rows_product.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/linear/block_operands.h"
#include "lib/nn/linear/micro_kernel.h"
#include "lib/nn/linear/thin_sums.h"

namespace trainwright::cpu {
namespace {

/// Rows of the weight times a panel of the transposed rows: out [rows][kPanelColumns].
struct FewRowsBlock {
  const uint8_t* left = nullptr;
  int64_t left_stride_bytes = 0, rows = 0;
  const float* right = nullptr;  ///< bf16 in pairs of rows
  int64_t columns = 0, steps = 0;
  bool fetches = false;  ///< what comes after the rows
  float* out = nullptr;
};

#if defined(__x86_64__)

TRAINWRIGHT_BEGIN_TARGET("avx512f")
namespace fp32 {
constexpr int kTerms = 1;
constexpr int64_t kElementBytes = 4;
inline __m512i LoadStep(const uint8_t* from) {
  int32_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return _mm512_set1_epi32(bits);
}
inline __m512 Add(__m512 sum, __m512i element, const __m512* column) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(element), column[0], sum);
}
#include "lib/nn/linear/few_rows_tile.h"
}  // namespace fp32

namespace widened {
constexpr int kTerms = 2;
constexpr int64_t kElementBytes = 2;
using fp32::LoadStep;
/// The terms of a pair one by one.
inline __m512 Add(__m512 sum, __m512i pair, const __m512* columns) {
  typedef uint32_t Bits __attribute__((vector_size(64)));
  const auto bits = (Bits)pair;
  sum = _mm512_fmadd_ps((__m512)(bits << 16), columns[0], sum);
  return _mm512_fmadd_ps((__m512)(bits & 0xFFFF0000u), columns[1], sum);
}
#include "lib/nn/linear/few_rows_tile.h"
}  // namespace widened
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f,avx512bf16")
namespace pairs {
constexpr int kTerms = 1;
constexpr int64_t kElementBytes = 2;
using fp32::LoadStep;
inline __m512 Add(__m512 sum, __m512i pair, const __m512* column) {
  return _mm512_dpbf16_ps(sum, (__m512bh)pair, (__m512bh)column[0]);
}
#include "lib/nn/linear/few_rows_tile.h"
}  // namespace pairs
TRAINWRIGHT_END_TARGET

#endif

/// Whether bf16 is multiplied by the instructions that the micro-kernels take. AMX has others.
bool HasPairs() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

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
      : product_(Transposed(product)),
        layout_(product_),
        panels_((product_.n + kPanelColumns - 1) / kPanelColumns),
        right_(Scratch(panels_ * layout_.panel_bytes())) {
    at::parallel_for(0, panels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        PackRight(product_, layout_, panel * kPanelColumns, Panel(panel));
      }
    });
  }

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

  uint8_t* Panel(int64_t panel) const {
    return right_.mutable_data_ptr<uint8_t>() + panel * layout_.panel_bytes();
  }

  void MultiplyRows(int64_t row, int64_t rows) const {
    const int64_t row_bytes = product_.a.stride * SourceBytes(product_);
    alignas(64) float sums[kRows * kPanelColumns], turned[kPanelColumns * kRows];
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, product_.n - column);
      const FewRowsBlock block = {.left = static_cast<const uint8_t*>(product_.a.data) + row * row_bytes,
                                  .left_stride_bytes = row_bytes,
                                  .rows = rows,
                                  .right = reinterpret_cast<const float*>(Panel(panel)),
                                  .columns = columns,
                                  .steps = product_.k * SourceBytes(product_) / 4,
                                  .fetches = panel == 0,
                                  .out = sums};
      ComputeBlock(block);
      BestKernels().transpose(reinterpret_cast<const uint32_t*>(sums), kPanelColumns, rows, columns,
                              reinterpret_cast<uint32_t*>(turned), kRows);
      BestKernels().store_tile(product_.out_bf16 ? Codec::kBf16 : Codec::kFp32, turned, kRows, columns, rows,
                               static_cast<uint8_t*>(product_.out) +
                                   (column * product_.out_stride + row) * (product_.out_bf16 ? 2 : 4),
                               product_.out_stride, product_.accumulate);
    }
  }

  void ComputeBlock(const FewRowsBlock& block) const {
#if defined(__x86_64__)
    if (layout_.bf16) return pairs::Compute(block);
    if (product_.bf16) return widened::Compute(block);
    fp32::Compute(block);
#endif
  }

  BlockProduct product_;  ///< transposed
  BlockLayout layout_;
  int64_t panels_;
  at::Tensor right_;
};

}  // namespace

bool MultiplyFewRows(const BlockProduct& product) {
  if (product.m > kMostFewRows || product.a.transposed || !product.b.transposed) return false;
  if (product.bf16) {  // in pairs, which are elements of 32 bits where they are transposed
    if (product.k % 2 != 0) return false;
    if (!product.widens && (product.a.stride % 2 != 0 || !HasPairs())) return false;
  }
  FewRows(product).Multiply();
  return true;
}

}  // namespace trainwright::cpu
