/// How far a tensor is from what it should be.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright::test {

/// |a - b| / |b| in the Euclidean norm, computed in double.
inline double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = b.to(at::kDouble);
  return a.to(at::kDouble).sub(exact).norm().item<double>() / exact.norm().item<double>();
}

}  // namespace trainwright::test
