// Rounding to fp8 and its GEMMs on every device against their formulas in double. Without a GPU the cuda
// instances are skipped: NOT RUN.
#include "lib/nn/linear/fp8.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lib/device/cuda_backend.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/nn/loss/linear_cross_entropy.h"
#include "tests/nn/reference.h"
#include "tests/support/fp8_reference.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

using test::RandomTensor;
using test::RelativeDifference;

class Fp8Test : public testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  at::Tensor Stored(const at::Tensor& x) const { return x.to(at::kBFloat16).to(device_); }
  at::Tensor Random(const std::vector<int64_t>& shape, uint64_t stream) const {
    return Stored(RandomTensor(shape, stream));
  }
  at::Tensor Empty(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::empty(shape, at::TensorOptions().dtype(dtype).device(device_));
  }
  static at::Tensor Double(const at::Tensor& x) { return x.cpu().to(at::kDouble); }

  const at::Device device_ = at::Device(GetParam());
  const Numerics numerics_{Precision::kBf16, at::kBFloat16};
};

/// What is read of x in fp8: each element by the slow conversion, times the scale. In double.
at::Tensor AsRead(const at::Tensor& x, Fp8Format format) {
  at::Tensor values = x.cpu().to(at::kFloat).contiguous().clone();
  auto* data = values.mutable_data_ptr<float>();
  float largest = 0;
  for (int64_t i = 0; i < values.numel(); ++i) largest = std::max(largest, std::fabs(data[i]));
  const float most = format == Fp8Format::kE4m3 ? 448 : 57344, factor = largest == 0 ? 1 : most / largest;
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(test::Fp8Value(format, test::Fp8Code(format, data[i] * factor)));
  }
  return values.to(at::kDouble).mul(static_cast<double>(1 / factor));
}
at::Tensor E4m3(const at::Tensor& x) {
  return AsRead(x, Fp8Format::kE4m3);
}
at::Tensor E5m2(const at::Tensor& x) {
  return AsRead(x, Fp8Format::kE5m2);
}

TEST_P(Fp8Test, TheScaleBringsTheLargestMagnitudeToTheLargestValue) {
  const auto scales = [&](const at::Tensor& x, Fp8Format format) {
    const at::Tensor scale = Fp8Matrix(numerics_, Stored(x), format).Rows().scale_2.cpu();
    return std::vector<float>(scale.const_data_ptr<float>(), scale.const_data_ptr<float>() + 2);
  };
  at::Tensor x = at::zeros({5, 37}, at::kFloat);
  for (const Fp8Format format : {Fp8Format::kE4m3, Fp8Format::kE5m2}) {
    const float most = format == Fp8Format::kE4m3 ? 448 : 57344;
    EXPECT_EQ(scales(at::zeros({5, 37}, at::kFloat), format), (std::vector<float>{1, 1}));
    x[3][20] = -7.0;
    x[4][36] = 6.0;
    EXPECT_EQ(scales(x, format), (std::vector<float>{1 / (most / 7), most / 7}));
    const at::Tensor tiny = x.mul(1e-37);
    EXPECT_EQ(scales(tiny, format), (std::vector<float>{1 / (most * 0x1p110f), most * 0x1p110f}));
    for (const double not_finite : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      at::Tensor broken = x.clone();
      broken[1][1] = not_finite;
      for (const float scale : scales(broken, format)) EXPECT_TRUE(std::isnan(scale)) << not_finite;
    }
  }
}

TEST_P(Fp8Test, LinesOfCodesAreRowsOrColumnsFilledUpWithZeros) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{37, 40}, {130, 61}, {16, 48}, {1, 5}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const at::Tensor wide = Random({rows, columns + 16}, 1), x = wide.narrow(1, 8, columns);
    const Fp8Matrix matrix(numerics_, x, Fp8Format::kE4m3);
    const float factor = matrix.Rows().scale_2.cpu().const_data_ptr<float>()[1];
    const at::Tensor values = x.cpu().to(at::kFloat).contiguous();
    for (const bool by_columns : {false, true}) {
      const at::Tensor codes = (by_columns ? matrix.Columns() : matrix.Rows()).codes_lk.cpu();
      ASSERT_EQ(codes.size(0), by_columns ? columns : rows);
      ASSERT_EQ(codes.size(1), ((by_columns ? rows : columns) + 15) / 16 * 16);
      for (int64_t line = 0; line < codes.size(0); ++line) {
        for (int64_t k = 0; k < codes.size(1); ++k) {
          const bool inside = k < (by_columns ? rows : columns);
          const int64_t at = by_columns ? k * columns + line : line * columns + k;
          const int expected =
              inside ? test::Fp8Code(Fp8Format::kE4m3, values.const_data_ptr<float>()[at] * factor) : 0;
          ASSERT_EQ(codes.const_data_ptr<uint8_t>()[line * codes.size(1) + k], expected)
              << by_columns << " " << line << " " << k;
        }
      }
    }
  }
}

TEST_P(Fp8Test, AProductIsThatOfTheRoundedValues) {
  const at::Tensor a = Random({53, 72}, 1), b = Stored(RandomTensor({48, 72}, 2).mul(0.01));
  const at::Tensor exact = E5m2(a).mm(E4m3(b).t()), before = RandomTensor({53, 48}, 3);
  const Fp8Operand left = Fp8Matrix(numerics_, a, Fp8Format::kE5m2).Rows(),
                   right = Fp8Matrix(numerics_, b, Fp8Format::kE4m3).Rows();
  at::Tensor in_bf16 = Empty({53, 48}, at::kBFloat16), in_fp32 = Empty({53, 48}, at::kFloat),
             added = before.to(device_, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  Multiply(left, right, in_bf16);
  Multiply(left, right, in_fp32);
  Multiply(left, right, added, /*accumulate=*/true);
  EXPECT_LT(RelativeDifference(Double(in_fp32), exact), 2e-6);
  EXPECT_LT(RelativeDifference(Double(added), exact.add(before)), 2e-6);
  const at::Tensor error = Double(in_bf16).sub(exact).abs();
  EXPECT_TRUE(error.le(exact.abs().mul(0x1p-8).add(1e-6)).all().item<bool>());
}

TEST_P(Fp8Test, KernelsAreTriedOnceForAShapeAndOneThatTheLibraryLacksIsNotUsed) {
  const Fp8Operand a = Fp8Matrix(numerics_, Random({20, 32}, 1), Fp8Format::kE4m3).Rows(),
                   b = Fp8Matrix(numerics_, Random({48, 32}, 2), Fp8Format::kE4m3).Rows();
  at::Tensor expected = Empty({20, 48}, at::kBFloat16), chosen = at::zeros_like(expected);
  Multiply(a, b, expected);
  ProductChooser chooser;
  chooser.set_tries(true);
  Multiply(a, b, chosen, /*accumulate=*/false, &chooser);
  chooser.set_tries(false);
  const std::string name = "fp8_product e4m3*e4m3->bf16 20x32x48";
  ASSERT_EQ(chooser.choices().size(), 1u);
  EXPECT_EQ(chooser.choices().begin()->first, name);
  EXPECT_LT(RelativeDifference(Double(chosen), Double(expected)), 1e-2);
  chooser.set_choices({{name, 100}});
  chosen.zero_();
  Multiply(a, b, chosen, /*accumulate=*/false, &chooser);
  EXPECT_TRUE(chosen.cpu().equal(expected.cpu()));
}

TEST_P(Fp8Test, WhatIsNotFiniteMakesAllOfAProductNan) {
  const at::Tensor b = Random({32, 48}, 2);
  for (const double not_finite : {HUGE_VAL, std::nan("")}) {
    at::Tensor a = RandomTensor({5, 48}, 1);
    a[2][7] = not_finite;
    at::Tensor out = Empty({5, 32}, at::kBFloat16);
    Multiply(Fp8Matrix(numerics_, Stored(a), Fp8Format::kE4m3).Rows(),
             Fp8Matrix(numerics_, b, Fp8Format::kE4m3).Rows(), out);
    EXPECT_TRUE(Double(out).isnan().all().item<bool>());
  }
}

/// Two parameters that are multiplied as one, their biases, and one alone.
TEST_P(Fp8Test, ALayersValuesAndGradientsAreTheFormulasOfTheRoundedOperands) {
  constexpr int64_t kRows = 43, kIn = 48, kOut = 80;
  FlatParameters parameters;
  const size_t first = parameters.Add("first", {32, kIn}, true),
               second = parameters.Add("second", {48, kIn}, true),
               first_bias = parameters.Add("first_bias", {32}, false),
               second_bias = parameters.Add("second_bias", {48}, false);
  parameters.Allocate(numerics_, device_);
  for (const size_t index : {first, second, first_bias, second_bias}) {
    parameters.Assign(index, RandomTensor(parameters[index].shape, index).mul(0.3));
  }
  parameters.RefreshCompute();
  parameters.ZeroGradients();
  const Linear layer(&parameters, {first, second}, {first_bias, second_bias}, /*fp8=*/true);
  const at::Tensor x = Random({kRows, kIn}, 10), dy = Stored(RandomTensor({kRows, kOut}, 11).mul(1e-3));
  at::Tensor y = Empty({kRows, kOut}, at::kBFloat16), d_x = Empty({kRows, kIn}, at::kBFloat16);
  layer.Forward(x, y);
  layer.Backward(dy, x, d_x);
  layer.Backward(dy, x, d_x);

  const at::Tensor weight = parameters.ComputeMatrix(first, kOut, kIn);
  at::Tensor exact = E4m3(x).mm(E4m3(weight).t());
  exact.narrow(1, 0, 32).add_(Double(parameters[first_bias].value));
  exact.narrow(1, 32, 48).add_(Double(parameters[second_bias].value));
  EXPECT_LT(RelativeDifference(Double(y), exact), 0x1p-8);
  EXPECT_LT(RelativeDifference(Double(d_x), E5m2(dy).mm(E4m3(weight))), 0x1p-8);
  const at::Tensor d_weight = E5m2(dy).t().mm(E4m3(x)).mul(2);
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(first)), d_weight.narrow(0, 0, 32)), 2e-6);
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(second)), d_weight.narrow(0, 32, 48)), 2e-6);
  EXPECT_LT(
      RelativeDifference(Double(parameters.Gradient(first_bias)), Double(dy).narrow(1, 0, 32).sum(0).mul(2)),
      1e-5);
}

/// The gradients of logits that are left in the workspace are rounded to bf16 first, which is no part of the
/// formula: so each error may be as large as one such rounding.
TEST_P(Fp8Test, TheHeadsLossAndGradientsAreTheFormulasOfTheRoundedOperands) {
  constexpr int64_t kRows = 37, kWidth = 48, kVocabulary = 50;
  Numerics numerics = numerics_;
  numerics.fp8.head = true;
  numerics.vocabulary_multiple = device_.is_cpu() ? 1 : 16;
  const at::Tensor hidden = Random({kRows, kWidth}, 1),
                   weight = Stored(RandomTensor({kVocabulary, kWidth}, 2).mul(0.2));
  at::Tensor labels = at::empty({kRows}, at::kLong);
  for (int64_t i = 0; i < kRows; ++i) labels.mutable_data_ptr<int64_t>()[i] = i * 7 % kVocabulary;
  at::Tensor d_hidden = Empty({kRows, kWidth}, at::kBFloat16),
             d_weight = Empty({kVocabulary, kWidth}, at::kFloat);
  LinearCrossEntropy head(numerics);
  const LossSum sum = head.LossAndGradients(hidden, weight, UploadHeadLabels(labels, {}, device_, true), {},
                                            1.0, d_hidden, GradientTarget(d_weight, /*accumulate=*/false));
  const double nats = device_.is_cpu() ? sum.loss_nats : sum.on_device.cpu()[0].item<double>();

  const at::Tensor logits = E4m3(hidden).mm(E4m3(weight).t()).to(at::kBFloat16).to(at::kDouble);
  const at::Tensor log_p = logits.log_softmax(1), p = log_p.exp();
  const at::Tensor chosen = log_p.gather(1, labels.unsqueeze(1));
  EXPECT_NEAR(nats, -chosen.sum().item<double>(), 2e-3 * nats);
  const at::Tensor d_logits = p.sub(at::zeros_like(p).scatter(1, labels.unsqueeze(1), 1.0)).to(at::kBFloat16);
  EXPECT_LT(RelativeDifference(Double(d_hidden), E5m2(d_logits).mm(E4m3(weight))), 0.02);
  EXPECT_LT(RelativeDifference(Double(d_weight), E5m2(d_logits).t().mm(E4m3(hidden))), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Devices, Fp8Test, testing::Values(at::kCPU, test::kTestedDevice),
                         [](const auto& info) { return test::NameOfDevice(info.param); });

}  // namespace
}  // namespace trainwright
