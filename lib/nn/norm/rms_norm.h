/// Root-mean-square normalisation fused with the residual addition before it, and its backward pass.
/// \source Zhang and Sennrich 2019, arXiv:1910.07467
///
/// Statistics and weights are fp32; the normalised output has the storage type. The residual stream
/// (residual_nd, sum_nd, x_nd) and its gradient are fp32, or with numerics.residual of the storage type: each
/// of their sums is then made in fp32 and rounded once, and what is normalised, forward, again and backward,
/// is the rounded sum.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// sum_nd = residual_nd + update_nd (an undefined update leaves `sum_nd` alone and normalises the residual);
/// rstd_n = 1 / sqrt(mean(x^2) + epsilon); normed_nd = x rstd weight_d.
void AddRmsNorm(const Numerics& numerics, const at::Tensor& residual_nd, const at::Tensor& update_nd,
                const at::Tensor& weight_d, double epsilon, at::Tensor& sum_nd, at::Tensor& normed_nd,
                at::Tensor& rstd_n);

/// The same normed_nd again from the input and the saved rstd_n, bit for bit.
void RmsNormAgain(const Numerics& numerics, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                  const at::Tensor& weight_d, at::Tensor& normed_nd);

/// Adds to d_x_nd and, where it is defined, d_weight_d (fp32).
/// \param d_short_nd storage type: becomes the new d_x_nd, rounded, as the next GEMM reads it; undefined:
///     not wanted, as where d_x_nd is itself rounded
void RmsNormBackward(const Numerics& numerics, const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                     const at::Tensor& rstd_n, const at::Tensor& weight_d, at::Tensor& d_x_nd,
                     at::Tensor& d_weight_d, at::Tensor& d_short_nd);

}  // namespace trainwright
