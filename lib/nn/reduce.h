/// Sums whose order does not depend on the thread count.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// Sum of squares in fp64 over blocks of a fixed size, added in order. \param values fp32, contiguous
double SumOfSquares(const at::Tensor& values);

}  // namespace trainwright
