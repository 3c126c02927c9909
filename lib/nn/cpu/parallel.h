/// Bridges from tensors to the kernels of kernels.h.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

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

/// Runs function(begin, end) on ranges of rows in parallel; `row_cost` is about the elements a row touches.
template <typename Function>
void ParallelRows(int64_t rows, int64_t row_cost, const Function& function) {
  constexpr int64_t kElementsAThread = 16384;
  at::parallel_for(0, rows, kElementsAThread / (row_cost + 1) + 1, function);
}

}  // namespace trainwright::cpu
