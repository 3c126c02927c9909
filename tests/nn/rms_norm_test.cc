#include "lib/nn/norm/rms_norm.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;
constexpr double kEpsilon = 1e-3;

at::Tensor Reference(const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor values = x.to(at::kDouble);
  return values.mul(values.pow(2).mean(1, true).add(kEpsilon).rsqrt()).mul(weight.to(at::kDouble));
}

class RmsNormTest : public testing::Test {
 protected:
  // 70 rows: more than one block of the weight gradient; 37 columns: no multiple of any vector.
  at::Tensor x_ = RandomTensor({70, 37}, 1), update_ = RandomTensor({70, 37}, 2),
             weight_ = RandomTensor({37}, 3);
  at::Tensor sum_ = at::zeros({70, 37}), normed_ = at::zeros({70, 37}), rstd_ = at::zeros({70});
};

TEST_F(RmsNormTest, ForwardEqualsTheFormula) {
  AddRmsNorm(test::kFp32, x_, update_, weight_, kEpsilon, sum_, normed_, rstd_);
  EXPECT_TRUE(at::equal(sum_, x_.add(update_)));
  EXPECT_LT(test::RelativeDifference(normed_, Reference(x_.add(update_), weight_)), 1e-6);
  AddRmsNorm(test::kFp32, x_, {}, weight_, kEpsilon, sum_, normed_, rstd_);
  EXPECT_LT(test::RelativeDifference(normed_, Reference(x_, weight_)), 1e-6);
}

TEST_F(RmsNormTest, RecomputedOutputHasTheSameBits) {
  for (const Numerics& numerics : {test::kFp32, Numerics{Precision::kBf16, at::kFloat}}) {
    AddRmsNorm(numerics, x_, {}, weight_, kEpsilon, sum_, normed_, rstd_);
    at::Tensor again = at::zeros({70, 37});
    RmsNormAgain(numerics, x_, rstd_, weight_, again);
    EXPECT_TRUE(at::equal(again, normed_));
  }
}

TEST_F(RmsNormTest, BackwardEqualsFiniteDifferences) {
  const at::Tensor d_normed = RandomTensor({70, 37}, 4);
  AddRmsNorm(test::kFp32, x_, {}, weight_, kEpsilon, sum_, normed_, rstd_);
  const at::Tensor before = RandomTensor({70, 37}, 5);
  at::Tensor d_x = before.clone(), d_weight = at::zeros({37}), unwanted;
  RmsNormBackward(test::kFp32, d_normed, x_, rstd_, weight_, d_x, d_weight, unwanted);
  const auto loss = [&](const at::Tensor& x, const at::Tensor& weight) {
    return Reference(x, weight).mul(d_normed).sum().item<double>();
  };
  const at::Tensor expected_x =
      test::NumericalGradient([&](const at::Tensor& x) { return loss(x, weight_); }, x_);
  const at::Tensor expected_weight =
      test::NumericalGradient([&](const at::Tensor& weight) { return loss(x_, weight); }, weight_);
  EXPECT_LT(test::RelativeDifference(d_x.sub(before), expected_x), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_weight, expected_weight), 1e-5);
}

}  // namespace
}  // namespace trainwright
