/// Layer normalisation fused with the residual addition before it, and its backward pass.
/// \source Ba, Kiros and Hinton 2016, arXiv:1607.06450
///
/// Statistics, weights and biases are fp32; the normalised output has the storage type. The residual stream
/// (residual_nd, sum_nd, x_nd) and its gradient are fp32, or with numerics.residual of the storage type: each
/// of their sums is then made in fp32 and rounded once, and what is normalised, forward, again and backward,
/// is the rounded sum. Biases may be undefined: none.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// What a normalisation learns.
struct LayerNormWeights {
  at::Tensor weight_d, bias_d;
};

/// Means and 1 / sqrt(variance + epsilon) of rows, fp32 [N].
struct LayerNormStatistics {
  at::Tensor mean_n, rstd_n;
};

/// sum_nd = residual_nd + update_nd + update_bias_d (an undefined update leaves `sum_nd` alone and normalises
/// the residual); normed_nd = (sum_nd - mean) rstd weight + bias. The variance is that of the row, divided by
/// D.
void AddLayerNorm(const Numerics& numerics, const at::Tensor& residual_nd, const at::Tensor& update_nd,
                  const at::Tensor& update_bias_d, const LayerNormWeights& weights, double epsilon,
                  at::Tensor& sum_nd, at::Tensor& normed_nd, LayerNormStatistics& statistics);

/// The same normed_nd again from the input and the saved statistics, bit for bit.
void LayerNormAgain(const Numerics& numerics, const at::Tensor& x_nd, const LayerNormStatistics& statistics,
                    const LayerNormWeights& weights, at::Tensor& normed_nd);

/// Adds to d_x_nd and, where they are defined, d_weight_d and d_bias_d (both fp32).
/// \param d_short_nd storage type: becomes the new d_x_nd, rounded, as the next GEMM reads it; undefined:
///     not wanted, as where d_x_nd is itself rounded
void LayerNormBackward(const Numerics& numerics, const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                       const LayerNormStatistics& statistics, const at::Tensor& weight_d, at::Tensor& d_x_nd,
                       at::Tensor& d_weight_d, at::Tensor& d_bias_d, at::Tensor& d_short_nd);

}  // namespace trainwright
