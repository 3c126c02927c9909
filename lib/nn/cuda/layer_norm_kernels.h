/// Layer normalisation on a GPU: what lib/nn/norm/layer_norm.h has, launched on a stream. Memory, numerics
/// and determinism are those of kernels.h. Statistics are fp32 and come from two passes over the row (which
/// stays in registers up to 4096 elements), so that a row far from zero keeps its variance.
#pragma once

#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

struct LayerNormInput {
  int64_t rows = 0, width = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;  ///< null: none
};

/// sum = residual + (update + update_bias); normed = (sum - mean) rstd weight + bias.
/// \param update stored; null: sum is not written, and the residual is normalised
/// \param update_bias null: none
/// \param normed stored
cudaError_t AddLayerNorm(NormStorage storage, const LayerNormInput& norm, const void* residual,
                         const void* update, const float* update_bias, float epsilon, void* sum, void* normed,
                         float* mean, float* rstd, cudaStream_t stream);

/// The same normed, bit for bit.
cudaError_t LayerNormAgain(NormStorage storage, const LayerNormInput& norm, const void* x, const float* mean,
                           const float* rstd, void* normed, cudaStream_t stream);

/// Strips of rows whose gradients of weight and bias are summed by one block each; of the rows alone.
int64_t LayerNormBackwardStrips(int64_t rows);

struct LayerNormGradients {
  void* d_x = nullptr;        ///< as the stream; is added to
  void* d_short = nullptr;    ///< stored: becomes the new d_x, rounded; null: not wanted
  float* d_weight = nullptr;  ///< is added to; null: not wanted
  float* d_bias = nullptr;    ///< as d_weight
  float* partial = nullptr;   ///< scratch [LayerNormBackwardStrips(rows), 2 width]; null where the two are
};

/// \param norm its bias is not read
/// \param d_normed stored
cudaError_t LayerNormBackward(NormStorage storage, const LayerNormInput& norm, const void* d_normed,
                              const void* x, const float* mean, const float* rstd,
                              const LayerNormGradients& gradients, cudaStream_t stream);

}  // namespace trainwright::cuda
