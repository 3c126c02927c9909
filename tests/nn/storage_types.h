/// Short storage types in the tests of operators: what operators read of them, and what rounding to them
/// leaves of a result.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/nn/precision.h"

namespace trainwright::test {

/// bf16 as it is, and bf16 and fp16 held in fp32.
inline std::vector<Numerics> ShortNumerics() {
  return {{Precision::kBf16, at::kBFloat16}, {Precision::kBf16, at::kFloat}, {Precision::kFp16, at::kFloat}};
}

inline std::string NameOf(const Numerics& numerics) {
  return PrecisionName(numerics.precision) + (numerics.emulated() ? ", emulated" : "");
}

/// x as it comes to an operator: under emulation not rounded yet. A copy.
inline at::Tensor Stored(const Numerics& numerics, const at::Tensor& x) {
  return x.clone().to(numerics.storage);
}

/// What the operator computes with, in fp32.
inline at::Tensor AsRead(const Numerics& numerics, const at::Tensor& x) {
  return x.to(PrecisionDtype(numerics.precision)).to(at::kFloat);
}

/// That x is a result in the short type, up to the fp32 rounding before it.
inline void ExpectRounded(const Numerics& numerics, const at::Tensor& x, const at::Tensor& exact) {
  const double spacing = numerics.precision == Precision::kBf16 ? 0x1p-8 : 0x1p-11;
  const at::Tensor wide = exact.to(at::kDouble), error = x.to(at::kDouble).sub(wide).abs();
  const double least = 1e-6 * wide.abs().max().item<double>();
  EXPECT_TRUE(error.le(wide.abs().mul(spacing).add(least)).all().item<bool>());
  EXPECT_TRUE(at::equal(AsRead(numerics, x), x.to(at::kFloat)));
}

}  // namespace trainwright::test
