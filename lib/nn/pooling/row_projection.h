/// The linear layer after the pooling: y = x W^T + b in fp32 under every precision, as vectors are. Shape
/// legend: T texts, D hidden size, p elements of a projected vector. projected_rows.h has it with the
/// parameters of a model.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// \param x_td fp32 [T, D]
/// \param matrix_pd fp32 [p, D]
/// \param bias_p fp32 [p]
/// \param y_tp fp32 [T, p], written; contiguous
void ProjectRows(const at::Tensor& x_td, const at::Tensor& matrix_pd, const at::Tensor& bias_p,
                 at::Tensor& y_tp);

/// Adds to the gradients of matrix and bias, and sets d_x_td. Undefined ones are not wanted. Sums over rows
/// are added up in an order that depends on their number alone.
/// \param d_y_tp fp32 [T, p], contiguous
void ProjectRowsBackward(const at::Tensor& d_y_tp, const at::Tensor& x_td, const at::Tensor& matrix_pd,
                         at::Tensor d_matrix_pd, at::Tensor d_bias_p, at::Tensor d_x_td);

}  // namespace trainwright
