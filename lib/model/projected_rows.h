/// The projection after the pooling (row_projection.h) with the parameters of a model that has one.
///
/// Shape legend: T texts, D hidden size, p elements of a projected vector.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/model/body.h"

namespace trainwright {

/// \param pooled_td fp32 [T, D]
/// \returns fp32 [T, p]
/// \pre the body has a projection; likewise below
at::Tensor Projected(const Body& body, const at::Tensor& pooled_td);

/// Adds to the gradients of matrix and bias, as far as they are trained.
/// \param d_projected_tp fp32 [T, p], contiguous
/// \returns the gradients of the pooled states, fp32 [T, D]
at::Tensor ProjectedBackward(Body* body, const at::Tensor& d_projected_tp, const at::Tensor& pooled_td);

}  // namespace trainwright
