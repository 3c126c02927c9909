#include "lib/nn/scan/eigen_decay.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::NumericalGradient;
using test::RandomTensor;
using test::RelativeDifference;

class EigenDecayTest : public ::testing::TestWithParam<TenInit> {};
INSTANTIATE_TEST_SUITE_P(Inits, EigenDecayTest, ::testing::Values(TenInit::kLru, TenInit::kCompat),
                         [](const auto& info) { return TenInitName(info.param); });

/// Of a channel, by the formulas of the header.
struct Channel {
  Channel(TenInit init, double a, double w) {
    const bool lru = init == TenInit::kLru;
    const double modulus = lru ? std::exp(-std::exp(a)) : 1 / (1 + std::exp(-a));
    lambda = std::polar(modulus, lru ? std::exp(w) : w);
    gamma = lru ? std::sqrt(1 - modulus * modulus) : 1;
  }
  std::complex<double> lambda;
  double gamma;
};

TEST_P(EigenDecayTest, IsWhatTheFormulasSay) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor a_k = RandomTensor({9}, 1), w_k = RandomTensor({9}, 2);
  const EigenDecay eigen = EigenDecayOf(GetParam(), a_k, w_k);
  EXPECT_EQ(eigen.gamma_k.defined(), GetParam() == TenInit::kLru);
  for (int64_t i = 0; i < a_k.numel(); ++i) {
    const Channel expected(GetParam(), a_k[i].item<double>(), w_k[i].item<double>());
    const std::complex<double> lambda = std::polar(std::exp(eigen.decay.log_modulus_k[i].item<double>()),
                                                   eigen.decay.angle_k[i].item<double>());
    EXPECT_LT(std::abs(lambda - expected.lambda), 1e-14);
    if (!eigen.gamma_k.defined()) continue;
    EXPECT_NEAR(eigen.gamma_k[i].item<double>(), expected.gamma, 1e-7);
  }
}

TEST_P(EigenDecayTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor a_k = RandomTensor({7}, 1), w_k = RandomTensor({7}, 2),
                   d_lambda_z = RandomTensor({14}, 3).to(at::kDouble),
                   d_gamma_k = RandomTensor({7}, 4).to(at::kDouble);
  const auto loss = [&](const at::Tensor& a, const at::Tensor& w) {
    double sum = 0;
    for (int64_t i = 0; i < 7; ++i) {
      const Channel channel(GetParam(), a[i].item<double>(), w[i].item<double>());
      sum += d_lambda_z[i].item<double>() * channel.lambda.real() +
             d_lambda_z[7 + i].item<double>() * channel.lambda.imag() +
             d_gamma_k[i].item<double>() * channel.gamma;
    }
    return sum;
  };
  at::Tensor d_a_k = RandomTensor({7}, 5), d_w_k = RandomTensor({7}, 6);
  const at::Tensor a_before = d_a_k.clone(), w_before = d_w_k.clone();
  EigenDecayBackward(GetParam(), a_k, w_k, d_lambda_z, d_gamma_k, d_a_k, d_w_k);
  const at::Tensor w64 = w_k.to(at::kDouble), a64 = a_k.to(at::kDouble);
  EXPECT_LT(RelativeDifference(d_a_k.sub(a_before),
                               NumericalGradient([&](const at::Tensor& a) { return loss(a, w64); }, a_k)),
            1e-6);
  EXPECT_LT(RelativeDifference(d_w_k.sub(w_before),
                               NumericalGradient([&](const at::Tensor& w) { return loss(a64, w); }, w_k)),
            1e-6);
}

TEST_P(EigenDecayTest, LambdaStaysInTheUnitCircleWhateverIsTrained) {
  const at::Tensor a_k = at::tensor(std::vector<float>{-100, -20, 0, 20, 100}),
                   w_k = at::tensor(std::vector<float>{1, 1, 1, 1, 1});
  const EigenDecay eigen = EigenDecayOf(GetParam(), a_k, w_k);
  EXPECT_LE(eigen.decay.log_modulus_k.max().item<double>(), -1e-6);
  at::Tensor d_a_k = at::zeros_like(a_k), d_w_k = at::zeros_like(a_k);
  EigenDecayBackward(GetParam(), a_k, w_k, RandomTensor({10}, 1).to(at::kDouble), {}, d_a_k, d_w_k);
  EXPECT_TRUE(d_a_k.isfinite().all().item<bool>());
}

TEST_P(EigenDecayTest, AClampedModulusHasOnlyAGradientThatMakesItSmaller) {
  const bool lru = GetParam() == TenInit::kLru;
  const at::Tensor a_k = at::tensor(std::vector<float>{lru ? -20.0F : 20.0F}), w_k = at::zeros_like(a_k);
  const double angle = lru ? 1 : 0;
  const at::Tensor outwards_z = at::tensor(std::vector<double>{std::cos(angle), std::sin(angle)});
  const auto gradient = [&](const at::Tensor& d_lambda_z) {
    at::Tensor d_a_k = at::zeros_like(a_k), d_w_k = at::zeros_like(a_k);
    EigenDecayBackward(GetParam(), a_k, w_k, d_lambda_z, {}, d_a_k, d_w_k);
    return d_a_k.item<double>();
  };
  // A loss that falls with |lambda|, and one that rises with it. The modulus at the edge is exp(-1e-6).
  EXPECT_EQ(gradient(outwards_z.neg()), 0);
  EXPECT_NEAR(gradient(outwards_z), lru ? -1e-6 : 1e-6, 1e-11);
}

constexpr int64_t kManyChannels = 4096;

DecayStart StartOf(const TenFields& fields, int64_t layer = 0, int64_t layers = 3) {
  return StartDecay(test::TestSeed(), "a", "w", fields, kManyChannels, layer, layers);
}

/// Whether numbers lie in a range, and their mean within 5 deviations of that of uniform ones.
void ExpectUniform(const at::Tensor& values_k, double lowest, double highest) {
  const double range = highest - lowest, slack = 1e-9 * std::abs(highest);
  EXPECT_GE(values_k.min().item<double>(), lowest - slack);
  EXPECT_LE(values_k.max().item<double>(), highest + slack);
  EXPECT_NEAR(values_k.mean().item<double>(), (lowest + highest) / 2,
              5 * range / std::sqrt(12.0 * static_cast<double>(values_k.numel())));
}

TEST(StartDecayTest, LruIsUniformOverARingInEveryLayer) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const TenFields fields{.min_modulus = 0.8, .max_modulus = 0.99, .max_angle = 2.5};
  for (const int64_t layer : {0, 2}) {
    const DecayStart start = StartOf(fields, layer);
    const EigenDecay eigen = EigenDecayOf(TenInit::kLru, start.a_k, start.w_k);
    ExpectUniform(eigen.decay.log_modulus_k.mul(2).exp(), 0.8 * 0.8, 0.99 * 0.99);
    ExpectUniform(eigen.decay.angle_k, 0, 2.5);
  }
}

TEST(StartDecayTest, CompatRemembersLongerFromLayerToLayer) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const TenFields fields{.init = TenInit::kCompat};
  ExpectUniform(StartOf(fields, 0).a_k, -3, -1.5);
  ExpectUniform(StartOf(fields, 1).a_k, -2.25, -0.75);
  ExpectUniform(StartOf(fields, 2).a_k, -1.5, 0);
  ExpectUniform(StartOf(fields, 0, 1).a_k, -3, -1.5);
}

TEST(StartDecayTest, CompatWithoutDepthIsTheSameInEveryLayer) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const TenFields fields{.init = TenInit::kCompat, .depth_decay = false};
  for (const int64_t layer : {0, 2}) ExpectUniform(StartOf(fields, layer).a_k, -3, -0.1);
}

TEST(StartDecayTest, CompatTurnsEvenlyAroundTheCircle) {
  const at::Tensor turns_k = StartOf({.init = TenInit::kCompat})
                                 .w_k.mul(static_cast<double>(kManyChannels) / (2 * std::numbers::pi));
  EXPECT_LT(turns_k.sub(at::arange(kManyChannels)).abs().max().item<double>(), 1e-9);
}

TEST(StartDecayTest, SeedAndNamesDecideAlone) {
  const TenFields fields;
  const auto start = [&](const std::string& a_name, const std::string& w_name, int64_t channels) {
    return StartDecay(7, a_name, w_name, fields, channels, 0, 2);
  };
  const DecayStart first = start("a", "w", 16), longer = start("a", "w", 32), other = start("b", "w", 16);
  EXPECT_TRUE(at::equal(first.a_k, longer.a_k.narrow(0, 0, 16)));
  EXPECT_TRUE(at::equal(first.w_k, longer.w_k.narrow(0, 0, 16)));
  EXPECT_TRUE(at::equal(first.w_k, other.w_k));
  EXPECT_FALSE(at::equal(first.a_k, other.a_k));
  EXPECT_FALSE(at::equal(first.a_k, first.w_k));
}

}  // namespace
}  // namespace trainwright
