/// Kernels over rows whose threads own columns: what belongs to a column (a bias) is loaded once, and what is
/// summed over rows stays in registers. A block takes kLanes packs of N columns through a strip of rows, a
/// row to each of its kGroups groups of lanes in turn.
#pragma once

#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/partial_sums.h"

namespace trainwright::cuda {

constexpr int kLanes = 32, kGroups = 8, kStripThreads = kLanes * kGroups;

inline RowStrips ColumnStripsOf(int64_t rows) {
  return RowStrips::Of(rows, /*least=*/4 * kGroups, /*most=*/256);
}

/// Blocks for rows of `width` elements in packs of N.
template <int N>
dim3 StripGrid(int64_t width, const RowStrips& strips) {
  constexpr int64_t kColumns = kLanes * N;
  return dim3(static_cast<unsigned>((width + kColumns - 1) / kColumns), static_cast<unsigned>(strips.count));
}

inline dim3 StripBlock() {
  return dim3(kLanes, kGroups);
}

/// The columns of this thread and its rows: begin, begin + kGroups, ... before end.
struct StripPlace {
  int64_t column, begin, end;

  __device__ StripPlace(const RowStrips& strips, int columns)
      : column((static_cast<int64_t>(blockIdx.x) * kLanes + threadIdx.x) * columns),
        begin(static_cast<int64_t>(blockIdx.y) * strips.rows + threadIdx.y),
        end(static_cast<int64_t>(blockIdx.y + 1) * strips.rows < strips.total_rows
                ? static_cast<int64_t>(blockIdx.y + 1) * strips.rows
                : strips.total_rows) {}
};

/// Writes the sums of the groups, in order, to this strip's row of `partial` [strips, width]. All threads of
/// the block call it.
template <int N>
__device__ inline void StoreStripSums(float (&sums)[N], const StripPlace& place, int64_t width,
                                      float* partial) {
  __shared__ float shared[kGroups][kLanes][N];
#pragma unroll
  for (int k = 0; k < N; ++k) shared[threadIdx.y][threadIdx.x][k] = sums[k];
  __syncthreads();
  if (threadIdx.y != 0 || place.column >= width) return;
  for (int group = 1; group < kGroups; ++group) {
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += shared[group][threadIdx.x][k];
  }
  StorePack<N>(sums, partial + static_cast<int64_t>(blockIdx.y) * width + place.column);
}

}  // namespace trainwright::cuda
