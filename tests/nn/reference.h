/// Slow, obvious forward passes in double precision, and gradients by central differences of them: the oracle
/// of the modules' tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <functional>

#include "lib/base/rng.h"
#include "lib/nn/precision.h"
#include "tests/support/relative_difference.h"
#include "tests/support/support.h"

namespace trainwright::test {

inline const Numerics kFp32{Precision::kFp32, at::kFloat};

/// fp32 normal numbers, a pure function of the test seed and `stream`.
inline at::Tensor RandomTensor(const std::vector<int64_t>& shape, uint64_t stream) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  const Rng rng(TestSeed(), "tensor", stream);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.mutable_data_ptr<float>()[i] = static_cast<float>(rng.Normal(static_cast<uint64_t>(i)));
  }
  return tensor;
}

/// d loss / d x by central differences, in double.
inline at::Tensor NumericalGradient(const std::function<double(const at::Tensor&)>& loss,
                                    const at::Tensor& at_point) {
  constexpr double kStep = 1e-5;
  at::Tensor x = at_point.to(at::kDouble).contiguous().clone();
  at::Tensor gradient = at::zeros_like(x);
  auto* values = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = loss(x);
    values[i] = value - kStep;
    const double below = loss(x);
    values[i] = value;
    gradient.mutable_data_ptr<double>()[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

}  // namespace trainwright::test
