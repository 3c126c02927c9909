/// Sums over the rows of a matrix in two stages whose order depends on the shape alone: a block sums a strip
/// of rows, then the strips are added up in order. Torch-free; pointers are device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trainwright::cuda {

/// Rows are cut into strips of the same size, the last one shorter.
struct RowStrips {
  int64_t rows = 0;        ///< of a strip
  int64_t count = 0;       ///< of strips, at most `most`
  int64_t total_rows = 0;  ///< of the matrix

  /// \param least rows of a strip, a multiple of which each strip has
  static RowStrips Of(int64_t total_rows, int64_t least, int64_t most) {
    const int64_t share = (total_rows + most - 1) / most;
    const int64_t rows = (share + least - 1) / least * least;
    return {rows, rows == 0 ? 0 : (total_rows + rows - 1) / rows, total_rows};
  }
};

/// first += the sums of columns [0, width) of the strips' rows, second += those of [width, 2 width). In eight
/// groups of strips, each in order, then the groups in order.
/// \param partial fp32 [strips, width], or [strips, 2 width] where there is a second
/// \param first, second fp32 [width]; null: not wanted
/// \param has_second whether partial has its columns
cudaError_t AddPartialSums(const float* partial, int64_t strips, int64_t width, float* first, float* second,
                           bool has_second, cudaStream_t stream);

}  // namespace trainwright::cuda
