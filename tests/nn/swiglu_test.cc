#include "lib/nn/activation/swiglu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <gtest/gtest.h>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

at::Tensor Reference(const at::Tensor& gate_up) {
  const int64_t width = gate_up.size(1) / 2;
  const at::Tensor gate = gate_up.narrow(1, 0, width).to(at::kDouble);
  return gate.mul(at::sigmoid(gate)).mul(gate_up.narrow(1, width, width).to(at::kDouble));
}

TEST(SwigluTest, ForwardEqualsTheFormulaFarFromZeroToo) {
  at::Tensor gate_up = test::RandomTensor({9, 2 * 21}, 1).mul(30);
  at::Tensor out = at::empty({9, 21});
  Swiglu(test::kFp32, gate_up, out);
  EXPECT_LT(out.to(at::kDouble).sub(Reference(gate_up)).abs().max().item<double>(), 1e-3);
  EXPECT_LT(test::RelativeDifference(out, Reference(gate_up)), 1e-6);
}

TEST(SwigluTest, BackwardEqualsFiniteDifferences) {
  const at::Tensor gate_up = test::RandomTensor({5, 2 * 21}, 2).mul(2),
                   d_out = test::RandomTensor({5, 21}, 3);
  at::Tensor gradient = gate_up.clone();
  SwigluBackward(test::kFp32, d_out, gradient);
  const at::Tensor expected = test::NumericalGradient(
      [&](const at::Tensor& x) { return Reference(x).mul(d_out).sum().item<double>(); }, gate_up);
  EXPECT_LT(test::RelativeDifference(gradient, expected), 1e-6);
}

}  // namespace
}  // namespace trainwright
