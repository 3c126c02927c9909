/// Where a GEMM puts a gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace trainwright {

struct GradientTarget {
  GradientTarget() = default;
  GradientTarget(at::Tensor gradient, bool accumulate = true)  // NOLINT: a gradient is added to
      : gradient(std::move(gradient)), accumulate(accumulate) {}

  at::Tensor gradient;  ///< fp32; undefined: not wanted
  /// Whether the gradient is added to what is there; else it is written, and what is there may be anything.
  bool accumulate = true;
};

}  // namespace trainwright
