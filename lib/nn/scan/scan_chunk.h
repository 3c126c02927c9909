/// A chunk of a diagonal scan as the kernels take it; see diagonal_scan.h. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright {

/// Rows [first, first + rows) of arrays [N, 2 channels].
struct ScanChunk {
  int64_t first = 0, rows = 0, channels = 0;
  const float* decay_nz = nullptr;  ///< of each row; null: of all rows the sum of these two
  const float *high_z = nullptr, *low_z = nullptr;
};

/// What the backward pass of a chunk reads and writes beside it.
struct ScanChunkBackward {
  const void *b_nz = nullptr, *d_c_nz = nullptr;  ///< stored
  const float* state_z = nullptr;                 ///< before the chunk
  float* carry_z = nullptr;     ///< gradient of the state after the chunk; becomes that of the one before
  void* d_b_nz = nullptr;       ///< stored
  double* d_decay_z = nullptr;  ///< of this chunk alone; null: not wanted
  float* d_decay_nz = nullptr;  ///< in the other's place where each row has its own
  float* scratch = nullptr;     ///< ScanScratch(...) elements
};

/// fp32 elements that the backward pass of a chunk takes for a range of channels.
inline int64_t ScanScratch(int64_t rows, int64_t channels) {
  return 2 * (rows + 1) * channels;
}

}  // namespace trainwright
