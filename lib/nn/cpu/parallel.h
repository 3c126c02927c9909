/// Bridges from tensors to the kernels of kernels.h.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/base/error.h"
#include "lib/nn/cpu/kernels.h"
#include "lib/nn/precision.h"

namespace trainwright::cpu {

inline Codec CodecOf(const Numerics& numerics) {
  if (numerics.precision == Precision::kFp32) return Codec::kFp32;
  if (numerics.storage == at::kBFloat16) return Codec::kBf16;
  TRAINWRIGHT_CHECK(numerics.emulated());
  return numerics.precision == Precision::kBf16 ? Codec::kRoundedBf16 : Codec::kRoundedFp16;
}

/// How the residual stream and its gradient look.
inline Codec StreamCodecOf(const Numerics& numerics) {
  return numerics.residual == Precision::kFp32 ? Codec::kFp32 : CodecOf(numerics);
}

/// The elements of a residual stream, of whatever type; a TRAINWRIGHT_CHECK on another than the numerics say.
inline const void* StreamData(const Numerics& numerics, const at::Tensor& stream) {
  TRAINWRIGHT_CHECK(stream.scalar_type() == numerics.residual_storage());
  return stream.const_data_ptr();
}
inline void* MutableStreamData(const Numerics& numerics, at::Tensor& stream) {
  TRAINWRIGHT_CHECK(stream.scalar_type() == numerics.residual_storage());
  return stream.mutable_data_ptr();
}

/// Runs function(begin, end) on ranges of rows in parallel; `row_cost` is about the elements a row touches.
template <typename Function>
void ParallelRows(int64_t rows, int64_t row_cost, const Function& function) {
  constexpr int64_t kElementsAThread = 16384;
  at::parallel_for(0, rows, kElementsAThread / (row_cost + 1) + 1, function);
}

/// Sums over rows (a weight's gradient, say) in blocks of rows that depend on their number alone, and so
/// to the same bits whatever the thread count. sum_block(sums, begin, end) adds its rows to `width` zeroed
/// elements, in parallel; add(sums) then takes the blocks' sums one by one, in order.
template <typename SumBlock, typename Add>
void SumOverRowBlocks(int64_t rows, int64_t width, const SumBlock& sum_block, const Add& add) {
  const int64_t block_rows = std::max<int64_t>(32, (rows + 63) / 64);
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  std::vector<float> partial(blocks * width, 0.0f);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      sum_block(&partial[block * width], block * block_rows, std::min(rows, (block + 1) * block_rows));
    }
  });
  for (int64_t block = 0; block < blocks; ++block) add(&partial[block * width]);
}

/// The fp32 elements, or null for an undefined tensor.
inline const float* DataOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

}  // namespace trainwright::cpu
