/// Kernels whose blocks work on a row at a time (the norms): its elements stay in the threads' registers
/// between the passes over it, where they fit.
#pragma once

#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/partial_sums.h"

namespace trainwright::cuda {

/// Threads of a block at most.
constexpr int kRowThreads = 256;
/// Columns of a pack: four fp32 are a 16-byte access.
constexpr int kRowPack = 4;

/// Calls function(pack, column) for the packs of N columns of this thread: at most kPacks, so that a pack is
/// held in registers, or with kPacks 0 any number, all with pack 0, whose values are read again each time.
template <int N, int kPacks, typename Function>
__device__ inline void ForPacks(int64_t width, const Function& function) {
  const int64_t first = static_cast<int64_t>(threadIdx.x) * N, step = static_cast<int64_t>(blockDim.x) * N;
  if constexpr (kPacks == 0) {
    for (int64_t column = first; column < width; column += step) function(0, column);
  } else {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const int64_t column = first + pack * step;
      if (column < width) function(pack, column);
    }
  }
}

/// Packs that a thread has room for.
template <int kPacks>
constexpr int kHeld = kPacks == 0 ? 1 : kPacks;

/// Threads of a block of which each has at most `packs` packs of the items, a multiple of 32.
inline unsigned RowThreadsOf(int64_t items, int64_t packs) {
  const int64_t threads = ((items + packs - 1) / packs + 31) / 32 * 32;
  return static_cast<unsigned>(threads < kRowThreads ? threads : kRowThreads);
}

/// Calls launch.template operator()<N, kPacks>(threads) with what a row of this width takes.
/// \param wide whether its elements can be moved in packs
template <typename Function>
cudaError_t WithPacks(int64_t width, bool wide, const Function& launch) {
  if (!wide) return launch.template operator()<1, 0>(RowThreadsOf(width, 1));
  const int64_t items = width / kRowPack;
  if (items <= kRowThreads) return launch.template operator()<kRowPack, 1>(RowThreadsOf(items, 1));
  if (items <= 2 * kRowThreads) return launch.template operator()<kRowPack, 2>(RowThreadsOf(items, 2));
  if (items <= 4 * kRowThreads) return launch.template operator()<kRowPack, 4>(RowThreadsOf(items, 4));
  return launch.template operator()<kRowPack, 0>(RowThreadsOf(items, 1));
}

/// Calls function.template operator()<type of stored values, of the stream>().
template <typename Function>
cudaError_t WithNormStorage(NormStorage storage, const Function& function) {
  if (storage.stream != Storage::kFp32 && storage.stream != storage.stored) return cudaErrorInvalidValue;
  return WithStorage(storage.stored, [&]<typename T>() {
    return storage.stream == Storage::kFp32 ? function.template operator()<T, float>()
                                            : function.template operator()<T, T>();
  });
}

/// Of rows whose gradients of weights one block sums up.
inline RowStrips NormStripsOf(int64_t rows) {
  return RowStrips::Of(rows, /*least=*/8, /*most=*/512);
}

}  // namespace trainwright::cuda
