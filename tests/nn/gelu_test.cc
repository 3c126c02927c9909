#include "lib/nn/activation/gelu.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/nn/reference.h"

namespace trainwright {

void PrintTo(GeluKind kind, std::ostream* out) {
  *out << (kind == GeluKind::kErf ? "erf" : "tanh");
}

namespace {

double Formula(GeluKind kind, double x) {
  if (kind == GeluKind::kErf) return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * inner));  // (1 + tanh u) / 2 without its cancellation
}

at::Tensor Reference(GeluKind kind, const at::Tensor& x) {
  at::Tensor out = x.to(at::kDouble).contiguous().clone();
  auto* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) values[i] = Formula(kind, values[i]);
  return out;
}

class GeluTest : public testing::TestWithParam<GeluKind> {};

TEST_P(GeluTest, IsWithinThreeTenMillionthsOfTheFormula) {
  const at::Tensor x = at::linspace(-20, 20, 1 << 20, at::kFloat).view({1024, 1024});
  at::Tensor out = at::empty({1024, 1024});
  Gelu(test::kFp32, GetParam(), x, {}, out);
  const at::Tensor error = out.to(at::kDouble).sub(Reference(GetParam(), x)).abs();
  EXPECT_LT(error.div(x.abs().clamp_min(1)).max().item<double>(), 3e-7);
}

TEST_P(GeluTest, TailKeepsItsRelativePrecision) {
  const at::Tensor x = at::linspace(-6, -1, 1 << 16, at::kFloat).view({256, 256});
  at::Tensor out = at::empty({256, 256});
  Gelu(test::kFp32, GetParam(), x, {}, out);
  const at::Tensor expected = Reference(GetParam(), x);
  EXPECT_LT(out.to(at::kDouble).sub(expected).div(expected).abs().max().item<double>(), 1e-5);
}

TEST_P(GeluTest, HugeValuesPassOrVanish) {
  at::Tensor x = at::empty({1, 6}), out = at::empty({1, 6});
  const float values[] = {1e5f, 1e30f, -1e5f, -1e30f, 12.0f, NAN};
  std::copy(values, values + 6, x.mutable_data_ptr<float>());
  Gelu(test::kFp32, GetParam(), x, {}, out);
  const float* result = out.const_data_ptr<float>();
  EXPECT_EQ(result[0], 1e5f);
  EXPECT_EQ(result[1], 1e30f);
  EXPECT_NEAR(result[2], 0.0f, 1e-30);
  EXPECT_NEAR(result[3], 0.0f, 1e-7);
  EXPECT_EQ(result[4], 12.0f);
  EXPECT_TRUE(std::isnan(result[5]));
  at::Tensor unwanted;
  GeluBackward(test::kFp32, GetParam(), at::ones_like(x), {}, x, unwanted);
  const float* gradient = x.const_data_ptr<float>();
  EXPECT_EQ(gradient[0], 1.0f);
  EXPECT_EQ(gradient[1], 1.0f);
  EXPECT_NEAR(gradient[2], 0.0f, 1e-30);
  EXPECT_NEAR(gradient[3], 0.0f, 1e-30);
  EXPECT_TRUE(std::isnan(gradient[5]));
}

TEST_P(GeluTest, DerivativeIsWithinAMillionthOfCentralDifferences) {
  const at::Tensor x = at::linspace(-20, 20, 1 << 16, at::kFloat).view({256, 256});
  at::Tensor gradient = x.clone(), unwanted;
  GeluBackward(test::kFp32, GetParam(), at::ones_like(x), {}, gradient, unwanted);
  const at::Tensor wide = x.to(at::kDouble);
  constexpr double kStep = 1e-5;
  const at::Tensor expected =
      Reference(GetParam(), wide.add(kStep)).sub(Reference(GetParam(), wide.sub(kStep))).div(2 * kStep);
  EXPECT_LT(gradient.to(at::kDouble).sub(expected).abs().max().item<double>(), 1e-6);
}

TEST_P(GeluTest, BiasIsAddedToTheInput) {
  const at::Tensor x = test::RandomTensor({9, 21}, 1), bias = test::RandomTensor({21}, 2),
                   d_out = test::RandomTensor({9, 21}, 3);
  at::Tensor out = at::empty({9, 21}), out_of_sum = at::empty({9, 21});
  Gelu(test::kFp32, GetParam(), x, bias, out);
  Gelu(test::kFp32, GetParam(), x.add(bias), {}, out_of_sum);
  EXPECT_TRUE(at::equal(out, out_of_sum));
  at::Tensor gradient = x.clone(), gradient_of_sum = x.add(bias);
  at::Tensor d_bias = at::zeros({21}), unwanted;
  GeluBackward(test::kFp32, GetParam(), d_out, bias, gradient, d_bias);
  GeluBackward(test::kFp32, GetParam(), d_out, {}, gradient_of_sum, unwanted);
  EXPECT_TRUE(at::equal(gradient, gradient_of_sum));
  EXPECT_LT(test::RelativeDifference(d_bias, gradient.to(at::kDouble).sum(0)), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GeluTest, testing::Values(GeluKind::kErf, GeluKind::kTanh),
                         [](const auto& test) { return test.param == GeluKind::kErf ? "Erf" : "Tanh"; });

}  // namespace
}  // namespace trainwright
