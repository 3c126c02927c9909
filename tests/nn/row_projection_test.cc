#include "lib/nn/pooling/row_projection.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

/// y = x W^T + b in double.
at::Tensor Expected(const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& bias) {
  return x.to(at::kDouble).matmul(matrix.to(at::kDouble).t()).add(bias.to(at::kDouble));
}

class RowProjectionTest : public testing::Test {
 protected:
  const at::Tensor x_ = RandomTensor({9, 7}, 1), matrix_ = RandomTensor({5, 7}, 2),
                   bias_ = RandomTensor({5}, 3), d_y_ = RandomTensor({9, 5}, 4);
};

TEST_F(RowProjectionTest, EqualsTheFormula) {
  at::Tensor y = at::full({9, 5}, NAN);
  ProjectRows(x_, matrix_, bias_, y);
  EXPECT_LT(test::RelativeDifference(y, Expected(x_, matrix_, bias_)), 1e-6);
}

TEST_F(RowProjectionTest, GradientsEqualFiniteDifferencesAndThoseOfWeightsAreAdded) {
  const auto objective = [&](const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& bias) {
    return Expected(x, matrix, bias).mul(d_y_).sum().item<double>();
  };
  at::Tensor d_matrix = at::full({5, 7}, 1.0f), d_bias = at::full({5}, 2.0f), d_x = at::full({9, 7}, NAN);
  ProjectRowsBackward(d_y_, x_, matrix_, d_matrix, d_bias, d_x);
  const at::Tensor of_matrix =
      test::NumericalGradient([&](const at::Tensor& w) { return objective(x_, w, bias_); }, matrix_);
  const at::Tensor of_bias =
      test::NumericalGradient([&](const at::Tensor& b) { return objective(x_, matrix_, b); }, bias_);
  const at::Tensor of_x =
      test::NumericalGradient([&](const at::Tensor& x) { return objective(x, matrix_, bias_); }, x_);
  EXPECT_LT(test::RelativeDifference(d_matrix.sub(1), of_matrix), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_bias.sub(2), of_bias), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_x, of_x), 1e-5);
}

TEST_F(RowProjectionTest, WhatIsNotWantedIsNotComputed) {
  at::Tensor d_x = at::full({9, 7}, NAN);
  ProjectRowsBackward(d_y_, x_, matrix_, {}, {}, d_x);
  EXPECT_TRUE(d_x.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace trainwright
