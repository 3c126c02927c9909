/// The bias of a linear layer, and its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// y_no = round(y_no + bias_o).
/// \param y_no storage type, rows contiguous
/// \param bias_o fp32, or undefined: y_no is rounded alone
void AddBias(const Numerics& numerics, const at::Tensor& bias_o, at::Tensor& y_no);

/// Adds the column sums of dy_no to d_bias_o (fp32), in an order that depends on the number of rows alone.
/// \param dy_no storage type, rows contiguous
void AccumulateBiasGradient(const Numerics& numerics, const at::Tensor& dy_no, at::Tensor& d_bias_o);

}  // namespace trainwright
