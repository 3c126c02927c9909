#include "lib/nn/activation/sigmoid_gate.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lib/nn/cpu/kernels.h"
#include "tests/nn/instruction_sets.h"
#include "tests/nn/reference.h"
#include "tests/nn/storage_types.h"

namespace trainwright {
namespace {

using test::NumericalGradient;
using test::RandomTensor;
using test::RelativeDifference;

/// By the formula, in double, element by element.
at::Tensor GateInDouble(const at::Tensor& gate_nd, const at::Tensor& bias_d, const at::Tensor& value_nd) {
  const at::Tensor gate = gate_nd.to(at::kDouble).contiguous(), bias = bias_d.to(at::kDouble).contiguous();
  at::Tensor out = value_nd.to(at::kDouble).contiguous().clone();
  const int64_t width = out.size(1);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double x = gate.const_data_ptr<double>()[i] + bias.const_data_ptr<double>()[i % width];
    out.mutable_data_ptr<double>()[i] /= 1 + std::exp(-x);
  }
  return out;
}

/// A gate and what it is given, in fp32.
struct GateCase {
  GateCase(int64_t rows, int64_t width)
      : gate_nd(RandomTensor({rows, width}, 1).mul(3)),
        bias_d(RandomTensor({width}, 2)),
        value_nd(RandomTensor({rows, width}, 3)),
        d_out_nd(RandomTensor({rows, width}, 4)) {}
  /// Rounded to what operators read.
  GateCase AsRead(const Numerics& numerics) const {
    GateCase read = *this;
    for (at::Tensor* tensor : {&read.gate_nd, &read.value_nd, &read.d_out_nd}) {
      *tensor = test::AsRead(numerics, *tensor);
    }
    return read;
  }
  at::Tensor Expected() const { return GateInDouble(gate_nd, bias_d, value_nd); }
  at::Tensor ExpectedGradientOfGate() const {
    return NumericalGradient([&](const at::Tensor& x) { return Loss(GateInDouble(x, bias_d, value_nd)); },
                             gate_nd);
  }
  at::Tensor ExpectedGradientOfBias() const {
    return NumericalGradient([&](const at::Tensor& x) { return Loss(GateInDouble(gate_nd, x, value_nd)); },
                             bias_d);
  }
  at::Tensor ExpectedGradientOfValue() const {
    return NumericalGradient([&](const at::Tensor& x) { return Loss(GateInDouble(gate_nd, bias_d, x)); },
                             value_nd);
  }
  double Loss(const at::Tensor& out) const { return out.mul(d_out_nd).sum().item<double>(); }

  at::Tensor gate_nd, bias_d, value_nd, d_out_nd;
};

TEST(SigmoidGateTest, IsTheFormulaForAnyWidth) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const int64_t width : {1, 7, 37}) {
    SCOPED_TRACE("width " + std::to_string(width));
    const GateCase gate(9, width);
    at::Tensor out = at::empty({9, width});
    SigmoidGate(test::kFp32, gate.gate_nd, gate.bias_d, gate.value_nd, out);
    EXPECT_LT(RelativeDifference(out, gate.Expected()), 1e-6);
  }
}

TEST(SigmoidGateTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const GateCase gate(5, 21);
  at::Tensor d_gate = gate.gate_nd.clone(), d_value = gate.value_nd.clone();
  SigmoidGateBackward(test::kFp32, gate.d_out_nd, gate.bias_d, d_gate, d_value);
  EXPECT_LT(RelativeDifference(d_gate, gate.ExpectedGradientOfGate()), 1e-6);
  EXPECT_LT(RelativeDifference(d_value, gate.ExpectedGradientOfValue()), 1e-6);
  EXPECT_LT(RelativeDifference(d_gate.sum(0), gate.ExpectedGradientOfBias()), 1e-6);
}

TEST(SigmoidGateTest, NoBiasIsAZeroBias) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  GateCase gate(5, 21);
  gate.bias_d.zero_();
  at::Tensor out = at::empty({5, 21}), d_gate = gate.gate_nd.clone(), d_value = gate.value_nd.clone();
  SigmoidGate(test::kFp32, gate.gate_nd, {}, gate.value_nd, out);
  SigmoidGateBackward(test::kFp32, gate.d_out_nd, {}, d_gate, d_value);
  EXPECT_LT(RelativeDifference(out, gate.Expected()), 1e-6);
  EXPECT_LT(RelativeDifference(d_gate, gate.ExpectedGradientOfGate()), 1e-6);
  EXPECT_LT(RelativeDifference(d_value, gate.ExpectedGradientOfValue()), 1e-6);
}

TEST(SigmoidGateTest, ShortTypesAreReadAndWrittenRounded) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const GateCase gate(5, 21);
  for (const Numerics& numerics : test::ShortNumerics()) {
    SCOPED_TRACE(test::NameOf(numerics));
    const GateCase read = gate.AsRead(numerics);
    at::Tensor d_gate = test::Stored(numerics, gate.gate_nd), d_value = test::Stored(numerics, gate.value_nd),
               out = at::empty_like(d_gate);
    SigmoidGate(numerics, d_gate, gate.bias_d, d_value, out);
    SigmoidGateBackward(numerics, test::Stored(numerics, gate.d_out_nd), gate.bias_d, d_gate, d_value);
    test::ExpectRounded(numerics, out, read.Expected());
    test::ExpectRounded(numerics, d_gate, read.ExpectedGradientOfGate());
    test::ExpectRounded(numerics, d_value, read.ExpectedGradientOfValue());
  }
}

TEST(SigmoidGateTest, TorchsOperatorsComputeTheSame) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const GateCase gate(5, 21);
  at::Tensor out = at::empty({5, 21}), d_gate = gate.gate_nd.clone(), d_value = gate.value_nd.clone();
  on_device::SigmoidGate(test::kFp32, gate.gate_nd, gate.bias_d, gate.value_nd, out);
  on_device::SigmoidGateBackward(test::kFp32, gate.d_out_nd, gate.bias_d, d_gate, d_value);
  EXPECT_LT(RelativeDifference(out, gate.Expected()), 1e-6);
  EXPECT_LT(RelativeDifference(d_gate, gate.ExpectedGradientOfGate()), 1e-6);
  EXPECT_LT(RelativeDifference(d_value, gate.ExpectedGradientOfValue()), 1e-6);
}

/// What the kernels of one instruction set make of some rows, side by side.
at::Tensor ResultsOf(const cpu::Kernels& kernels, const GateCase& gate) {
  const int64_t rows = gate.gate_nd.size(0), width = gate.gate_nd.size(1);
  at::Tensor out = at::zeros({rows, width}), d_gate = gate.gate_nd.clone(), d_value = gate.value_nd.clone();
  kernels.sigmoid_gate(cpu::Codec::kFp32, gate.gate_nd.const_data_ptr(), gate.bias_d.const_data_ptr<float>(),
                       gate.value_nd.const_data_ptr(), width, out.mutable_data_ptr(), 1, rows - 2);
  kernels.sigmoid_gate_backward(cpu::Codec::kFp32, d_gate.mutable_data_ptr(),
                                gate.bias_d.const_data_ptr<float>(), d_value.mutable_data_ptr(),
                                gate.d_out_nd.const_data_ptr(), width, 1, rows - 2);
  return at::cat({out, d_gate, d_value});
}

TEST(SigmoidGateTest, EveryInstructionSetComputesTheSameUpToRounding) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const GateCase gate(9, 37);
  const at::Tensor expected = ResultsOf(cpu::kBaselineKernels, gate);
  for (const cpu::Kernels* kernels : test::KernelsBesideBaseline()) {
    EXPECT_LT(RelativeDifference(ResultsOf(*kernels, gate), expected), 1e-6) << kernels->name;
  }
}

TEST(SigmoidGateTest, OfShapesAloneNothingIsComputed) {
  const at::Tensor x = at::empty({9, 21}, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
  at::Tensor gate = at::empty_like(x), value = at::empty_like(x);
  SigmoidGate(test::kFp32, gate, {}, value, gate);
  SigmoidGateBackward(test::kFp32, x, {}, gate, value);
  EXPECT_EQ(gate.sizes(), x.sizes());
}

}  // namespace
}  // namespace trainwright
