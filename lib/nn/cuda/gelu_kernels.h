/// The Gaussian error linear unit on a GPU: what lib/nn/activation/gelu.h has, launched on a stream. Memory,
/// numerics and determinism are those of kernels.h; accuracy is that of gelu_kind.h.
#pragma once

#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

/// out = gelu(in + bias).
/// \param in, out stored
/// \param bias null: none
cudaError_t Gelu(Storage storage, GeluKind kind, const void* in, const float* bias, int64_t rows,
                 int64_t width, void* out, cudaStream_t stream);

/// Overwrites `in` with its gradient.
/// \param d_bias fp32: the column sums of the rounded gradient are added, the bits of BiasBackward; null: not
///        wanted
/// \param partial scratch as that of BiasBackward; null where d_bias is
cudaError_t GeluBackward(Storage storage, GeluKind kind, const void* d_out, const float* bias, int64_t rows,
                         int64_t width, void* in, float* d_bias, float* partial, cudaStream_t stream);

}  // namespace trainwright::cuda
