#include "lib/nn/activation/silu.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/nn/cpu/kernels.h"
#include "tests/nn/instruction_sets.h"
#include "tests/nn/reference.h"
#include "tests/nn/storage_types.h"

namespace trainwright {
namespace {

at::Tensor SiluInDouble(const at::Tensor& x) {
  at::Tensor out = x.to(at::kDouble).contiguous().clone();
  auto* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) values[i] /= 1 + std::exp(-values[i]);
  return out;
}

/// By central differences.
at::Tensor SlopeInDouble(const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  const at::Tensor wide = x.to(at::kDouble);
  return SiluInDouble(wide.add(kStep)).sub(SiluInDouble(wide.sub(kStep))).div(2 * kStep);
}

TEST(SiluTest, IsWithinHalfAMillionthOfTheFormula) {
  const at::Tensor x = at::linspace(-30, 30, 1 << 16, at::kFloat).view({256, 256});
  at::Tensor out = at::empty_like(x);
  Silu(test::kFp32, x, out);
  const at::Tensor error = out.to(at::kDouble).sub(SiluInDouble(x)).abs();
  EXPECT_LT(error.div(x.abs().clamp_min(1)).max().item<double>(), 5e-7);
}

TEST(SiluTest, DerivativeIsWithinTwoMillionthsOfCentralDifferences) {
  const at::Tensor x = at::linspace(-30, 30, 1 << 16, at::kFloat).view({256, 256});
  at::Tensor gradient = x.clone();
  SiluBackward(test::kFp32, at::ones_like(x), gradient);
  EXPECT_LT(gradient.to(at::kDouble).sub(SlopeInDouble(x)).abs().max().item<double>(), 2e-6);
}

TEST(SiluTest, HugeValuesPassOrVanish) {
  at::Tensor x = at::tensor(std::vector<float>{1e5f, 1e30f, -1e5f, -1e30f, NAN}).view({1, 5});
  at::Tensor out = at::empty_like(x);
  Silu(test::kFp32, x, out);
  const float* result = out.const_data_ptr<float>();
  EXPECT_EQ(result[0], 1e5f);
  EXPECT_EQ(result[1], 1e30f);
  EXPECT_NEAR(result[2], 0.0f, 1e-7);
  EXPECT_NEAR(result[3], 0.0f, 1e-7);
  EXPECT_TRUE(std::isnan(result[4]));
}

TEST(SiluTest, RowsOfAnyWidthAreDoneWhole) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const int64_t width : {1, 7, 37}) {
    SCOPED_TRACE("width " + std::to_string(width));
    const at::Tensor x = test::RandomTensor({5, width}, 1), d_out = test::RandomTensor({5, width}, 2);
    at::Tensor out = x.clone(), gradient = x.clone();
    Silu(test::kFp32, out, out);  // in place
    SiluBackward(test::kFp32, d_out, gradient);
    EXPECT_LT(test::RelativeDifference(out, SiluInDouble(x)), 1e-6);
    EXPECT_LT(test::RelativeDifference(gradient, SlopeInDouble(x).mul(d_out)), 1e-6);
  }
}

TEST(SiluTest, ShortTypesAreReadAndWrittenRounded) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor x = test::RandomTensor({9, 21}, 1).mul(3), d_out = test::RandomTensor({9, 21}, 2);
  for (const Numerics& numerics : test::ShortNumerics()) {
    SCOPED_TRACE(test::NameOf(numerics));
    const at::Tensor in = test::Stored(numerics, x), read = test::AsRead(numerics, x);
    at::Tensor out = at::empty_like(in), gradient = in.clone();
    Silu(numerics, in, out);
    SiluBackward(numerics, test::Stored(numerics, d_out), gradient);
    test::ExpectRounded(numerics, out, SiluInDouble(read));
    test::ExpectRounded(numerics, gradient, SlopeInDouble(read).mul(test::AsRead(numerics, d_out)));
  }
}

TEST(SiluTest, TorchsOperatorsComputeTheSame) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor x = test::RandomTensor({9, 21}, 1).mul(3), d_out = test::RandomTensor({9, 21}, 2);
  at::Tensor out = at::empty_like(x), gradient = x.clone();
  on_device::Silu(test::kFp32, x, out);
  on_device::SiluBackward(test::kFp32, d_out, gradient);
  EXPECT_LT(test::RelativeDifference(out, SiluInDouble(x)), 1e-6);
  EXPECT_LT(test::RelativeDifference(gradient, SlopeInDouble(x).mul(d_out)), 1e-6);
}

/// What the kernels of one instruction set make of some rows, side by side.
at::Tensor ResultsOf(const cpu::Kernels& kernels, const at::Tensor& x, const at::Tensor& d_out) {
  const int64_t rows = x.size(0), width = x.size(1);
  at::Tensor out = at::zeros({rows, width}), gradient = x.clone();
  kernels.silu(cpu::Codec::kFp32, x.const_data_ptr(), width, out.mutable_data_ptr(), 1, rows - 2);
  kernels.silu_backward(cpu::Codec::kFp32, gradient.mutable_data_ptr(), d_out.const_data_ptr(), width, 1,
                        rows - 2);
  return at::cat({out, gradient});
}

TEST(SiluTest, EveryInstructionSetComputesTheSameUpToRounding) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor x = test::RandomTensor({9, 37}, 1).mul(3), d_out = test::RandomTensor({9, 37}, 2);
  const at::Tensor expected = ResultsOf(cpu::kBaselineKernels, x, d_out);
  for (const cpu::Kernels* kernels : test::KernelsBesideBaseline()) {
    EXPECT_LT(test::RelativeDifference(ResultsOf(*kernels, x, d_out), expected), 1e-6) << kernels->name;
  }
}

TEST(SiluTest, OfShapesAloneNothingIsComputed) {
  const at::Tensor x = at::empty({9, 21}, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
  at::Tensor out = at::empty_like(x);
  Silu(test::kFp32, x, out);
  SiluBackward(test::kFp32, x, out);
  EXPECT_EQ(out.sizes(), x.sizes());
}

}  // namespace
}  // namespace trainwright
