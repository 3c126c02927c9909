#include "lib/nn/norm/layer_norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;
constexpr double kEpsilon = 1e-3;

at::Tensor Reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor values = x.to(at::kDouble);
  const at::Tensor centered = values.sub(values.mean(1, true));
  const at::Tensor normal = centered.mul(centered.pow(2).mean(1, true).add(kEpsilon).rsqrt());
  return normal.mul(weight.to(at::kDouble)).add(bias.to(at::kDouble));
}

class LayerNormTest : public testing::Test {
 protected:
  // 70 rows: more than one block of the weight gradient; 37 columns: no multiple of any vector.
  at::Tensor x_ = RandomTensor({70, 37}, 1).add(2), update_ = RandomTensor({70, 37}, 2),
             weight_ = RandomTensor({37}, 3), bias_ = RandomTensor({37}, 4), zero_ = at::zeros({37});
  at::Tensor sum_ = at::zeros({70, 37}), normed_ = at::zeros({70, 37});
  LayerNormStatistics statistics_{at::zeros({70}), at::zeros({70})};
};

TEST_F(LayerNormTest, ForwardEqualsTheFormula) {
  const at::Tensor update_bias = RandomTensor({37}, 5);
  AddLayerNorm(test::kFp32, x_, update_, update_bias, {weight_, bias_}, kEpsilon, sum_, normed_, statistics_);
  const at::Tensor sum = x_.to(at::kDouble).add(update_).add(update_bias);
  EXPECT_LT(test::RelativeDifference(sum_, sum), 1e-7);
  EXPECT_LT(test::RelativeDifference(normed_, Reference(sum, weight_, bias_)), 1e-6);
  AddLayerNorm(test::kFp32, x_, update_, {}, {weight_, {}}, kEpsilon, sum_, normed_, statistics_);
  EXPECT_TRUE(at::equal(sum_, x_.add(update_)));
  EXPECT_LT(test::RelativeDifference(normed_, Reference(x_.add(update_), weight_, zero_)), 1e-6);
  AddLayerNorm(test::kFp32, x_, {}, {}, {weight_, bias_}, kEpsilon, sum_, normed_, statistics_);
  EXPECT_LT(test::RelativeDifference(normed_, Reference(x_, weight_, bias_)), 1e-6);
}

TEST_F(LayerNormTest, ARowFarFromZeroKeepsItsVariance) {
  const at::Tensor far = x_.add(1000);  // the squares' fp32 spacing, 0.06, is a sixteenth of the variance
  AddLayerNorm(test::kFp32, far, {}, {}, {weight_, bias_}, kEpsilon, sum_, normed_, statistics_);
  EXPECT_LT(test::RelativeDifference(normed_, Reference(far, weight_, bias_)), 1e-4);
}

TEST_F(LayerNormTest, RecomputedOutputHasTheSameBits) {
  for (const Numerics& numerics : {test::kFp32, Numerics{Precision::kBf16, at::kFloat}}) {
    for (const at::Tensor& bias : {bias_, at::Tensor()}) {
      AddLayerNorm(numerics, x_, update_, {}, {weight_, bias}, kEpsilon, sum_, normed_, statistics_);
      at::Tensor again = at::zeros({70, 37});
      LayerNormAgain(numerics, sum_, statistics_, {weight_, bias}, again);
      EXPECT_TRUE(at::equal(again, normed_));
    }
  }
}

TEST_F(LayerNormTest, BackwardEqualsFiniteDifferences) {
  const at::Tensor d_normed = RandomTensor({70, 37}, 6);
  AddLayerNorm(test::kFp32, x_, {}, {}, {weight_, bias_}, kEpsilon, sum_, normed_, statistics_);
  const at::Tensor before = RandomTensor({70, 37}, 7);
  at::Tensor d_x = before.clone(), d_weight = at::zeros({37}), d_bias = at::zeros({37}), none;
  LayerNormBackward(test::kFp32, d_normed, x_, statistics_, weight_, d_x, d_weight, d_bias, none);
  const auto loss = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return Reference(x, weight, bias).mul(d_normed).sum().item<double>();
  };
  const at::Tensor expected_x =
      test::NumericalGradient([&](const at::Tensor& x) { return loss(x, weight_, bias_); }, x_);
  const at::Tensor expected_weight =
      test::NumericalGradient([&](const at::Tensor& weight) { return loss(x_, weight, bias_); }, weight_);
  const at::Tensor expected_bias =
      test::NumericalGradient([&](const at::Tensor& bias) { return loss(x_, weight_, bias); }, bias_);
  EXPECT_LT(test::RelativeDifference(d_x.sub(before), expected_x), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_weight, expected_weight), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_bias, expected_bias), 1e-5);
  at::Tensor d_x_alone = before.clone(), d_weight_alone = at::zeros({37});
  LayerNormBackward(test::kFp32, d_normed, x_, statistics_, weight_, d_x_alone, d_weight_alone, none, none);
  EXPECT_TRUE(at::equal(d_x_alone, d_x));
  EXPECT_TRUE(at::equal(d_weight_alone, d_weight));
}

TEST_F(LayerNormTest, GradientsDoNotDependOnTheThreadCount) {
  const int threads = at::get_num_threads();
  const at::Tensor x = RandomTensor({700, 37}, 8), d_normed = RandomTensor({700, 37}, 9);
  at::Tensor sum = at::zeros({700, 37}), normed = at::zeros({700, 37}), first;
  LayerNormStatistics statistics{at::zeros({700}), at::zeros({700})};
  AddLayerNorm(test::kFp32, x, {}, {}, {weight_, bias_}, kEpsilon, sum, normed, statistics);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    at::Tensor d_x = at::zeros({700, 37}), gradients = at::zeros({2, 37});
    at::Tensor d_weight = gradients[0], d_bias = gradients[1], none;
    LayerNormBackward(test::kFp32, d_normed, x, statistics, weight_, d_x, d_weight, d_bias, none);
    if (!first.defined()) first = gradients;
    EXPECT_TRUE(at::equal(gradients, first)) << count << " threads";
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace trainwright
