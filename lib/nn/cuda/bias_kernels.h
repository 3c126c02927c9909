/// The bias of a linear layer and its gradient on a GPU: what lib/nn/linear/bias.h has, launched on a stream.
/// Memory, numerics and determinism are those of kernels.h; the rows of a matrix may lie apart, so that it
/// can be columns of another.
#pragma once

#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

/// x = round(x + bias).
/// \param x stored, rows `stride` elements apart
cudaError_t AddBias(Storage storage, void* x, const float* bias, int64_t rows, int64_t width, int64_t stride,
                    cudaStream_t stream);

/// Rows of the scratch of BiasBackward and GeluBackward; of the rows alone.
int64_t ColumnSumStrips(int64_t rows);

/// d_bias += the column sums of dy.
/// \param dy stored, rows `stride` elements apart
/// \param partial scratch, fp32 [ColumnSumStrips(rows), width]
cudaError_t BiasBackward(Storage storage, const void* dy, int64_t rows, int64_t width, int64_t stride,
                         float* d_bias, float* partial, cudaStream_t stream);

}  // namespace trainwright::cuda
