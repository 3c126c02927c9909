#include "lib/nn/linear/block_tile.h"

#include <string.h>

#include "lib/base/error.h"
#include "lib/nn/linear/block_operands.h"
#include "lib/nn/linear/micro_kernel.h"
#include "lib/nn/linear/thin_sums.h"

namespace trainwright::cpu {

#if defined(__x86_64__)

namespace {

TRAINWRIGHT_BEGIN_TARGET("avx512f")
struct ContiguousSteps {
  const uint8_t* data;
  int64_t stride_bytes;
  bool fetches;

  [[gnu::always_inline]] const uint8_t* At(int64_t row, int64_t step) const {
    return data + row * stride_bytes + step * 4;
  }
  /// Rows are too short for the processor to foresee the next ones.
  [[gnu::always_inline]] void Fetch(int64_t row, int64_t step) const {
    if (fetches) _mm_prefetch(reinterpret_cast<const char*>(At(row, step)), _MM_HINT_T0);
  }
  ContiguousSteps From(int64_t row, int64_t step) const { return {At(row, step), stride_bytes, fetches}; }
};

struct ContiguousRows {
  const uint8_t* data;
  int64_t stride_bytes;

  [[gnu::always_inline]] const uint8_t* At(int64_t row, int64_t step) const {
    return data + step * stride_bytes + row * 4;
  }
  [[gnu::always_inline]] void Fetch(int64_t, int64_t) const {}
  ContiguousRows From(int64_t row, int64_t step) const { return {At(row, step), stride_bytes}; }
};

/// Lines that each tile fetches of what is multiplied next, for each 16 steps of its own.
constexpr int64_t kLinesAhead = 3, kLineElements = 16;
inline const float* FetchLines(const float* from) {
  for (int64_t line = 0; line < kLinesAhead; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(from + line * kLineElements), _MM_HINT_T1);
  }
  return from + kLinesAhead * kLineElements;
}
/// Where the part of a tile begins.
inline int64_t PartOfTile(int64_t tile, int64_t steps) {
  return tile * ((steps + 15) / 16) * kLinesAhead * kLineElements;
}

namespace fp32 {
constexpr int kTerms = 1;
constexpr int64_t kBlockSteps = kBlockDepth;
inline __m512 Add(__m512 sum, __m512i element, const __m512* column) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(element), column[0], sum);
}
#include "lib/nn/linear/block_tile_body.h"
}  // namespace fp32

namespace widened {
constexpr int kTerms = 2;
constexpr int64_t kBlockSteps = kBlockDepth / 2;
/// The terms of a pair one by one.
inline __m512 Add(__m512 sum, __m512i pair, const __m512* columns) {
  typedef uint32_t Bits __attribute__((vector_size(64)));
  const auto bits = (Bits)pair;
  sum = _mm512_fmadd_ps((__m512)(bits << 16), columns[0], sum);
  return _mm512_fmadd_ps((__m512)(bits & 0xFFFF0000u), columns[1], sum);
}
#include "lib/nn/linear/block_tile_body.h"
}  // namespace widened
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f,avx512bf16")
namespace pairs {
constexpr int kTerms = 1;
constexpr int64_t kBlockSteps = kBlockDepth / 2;
inline __m512 Add(__m512 sum, __m512i pair, const __m512* column) {
  return _mm512_dpbf16_ps(sum, (__m512bh)pair, (__m512bh)column[0]);
}
#include "lib/nn/linear/block_tile_body.h"
}  // namespace pairs
TRAINWRIGHT_END_TARGET

}  // namespace

bool HasTiles(TileTerms terms) {
  return __builtin_cpu_supports("avx512f") &&
         (terms != TileTerms::kPairs ||
          (__builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-bf16")));
}

void ComputeTiles(const TileBlock& block) {
  const ContiguousSteps steps = {block.left, block.left_stride_bytes, block.fetches};
  const ContiguousRows rows = {block.left, block.left_stride_bytes};
  switch (block.terms) {
    case TileTerms::kFp32:
      return block.left_transposed ? fp32::Compute(block, rows) : fp32::Compute(block, steps);
    case TileTerms::kPairs:
      return block.left_transposed ? pairs::Compute(block, rows) : pairs::Compute(block, steps);
    case TileTerms::kWidened:
      TRAINWRIGHT_CHECK(!block.left_transposed);
      return widened::Compute(block, steps);
  }
}

#else

bool HasTiles(TileTerms) {
  return false;
}

void ComputeTiles(const TileBlock&) {
  TRAINWRIGHT_CHECK(false);
}

#endif

}  // namespace trainwright::cpu
