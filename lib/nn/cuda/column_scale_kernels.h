/// The scales of columns on a GPU: what lib/nn/linear/dora_scales.h has, launched on a stream. Memory,
/// numerics and determinism are those of kernels.h; the rows of a matrix may lie apart, so that it can be
/// columns of another.
#pragma once

#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

struct ColumnScales {
  const float *scale, *norm;  ///< [width]
  int64_t rows, width;
};

/// Rows of the scratch of ScaleColumnsBackward; of the rows alone.
int64_t ScaleColumnsStrips(int64_t rows);

/// d_magnitude += the column sums of dy y, divided by the norms; then y = round(scale dy).
/// \param dy, y stored, rows `dy_stride` and `y_stride` elements apart
/// \param d_magnitude fp32 [width]
/// \param partial scratch, fp32 [ScaleColumnsStrips(rows), width]
cudaError_t ScaleColumnsBackward(Storage storage, const ColumnScales& of, const void* dy, int64_t dy_stride,
                                 void* y, int64_t y_stride, float* d_magnitude, float* partial,
                                 cudaStream_t stream);

}  // namespace trainwright::cuda
