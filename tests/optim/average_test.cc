// The moving average of the weights, against its definition in double.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/base/rng.h"
#include "lib/optim/adamw.h"
#include "lib/optim/optimizer_registry.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr double kRate = 1e-2;

/// Two parameters whose elements do not fill their places in the buffer.
struct Trained {
  explicit Trained(double decay) {
    parameters.Add("matrix.weight", {5, 7}, true);
    parameters.Add("norm.weight", {3}, false);
    parameters.Allocate(Numerics{}, at::Device(at::kCPU));
    const Rng rng(test::TestSeed(), "values");
    float* values = parameters.values().mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameters.elements(); ++i) {
      values[i] = static_cast<float>(rng.Normal(static_cast<uint64_t>(i)));
    }
    OptimizerOptions options;
    options.average_decay = decay;
    optimizer = MakeOptimizer(BuiltInOptimizers(), &parameters, options, 1);
  }
  void FillGradients(uint64_t step) {
    const Rng rng(test::TestSeed(), "gradients", step);
    float* values = parameters.gradients().mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameters.elements(); ++i) {
      values[i] = static_cast<float>(rng.Normal(static_cast<uint64_t>(i)));
    }
  }
  at::Tensor average() const {
    for (const OptimizerState& state : optimizer->States()) {
      if (state.name == kAverageState) return state.value;
    }
    return {};
  }

  FlatParameters parameters;
  std::unique_ptr<Optimizer> optimizer;
};

TEST(AverageTest, FollowsItsDefinitionFromTheFirstUpdateOn) {
  for (const double decay : {0.5, 0.95, 0.9999}) {
    Trained trained(decay);
    std::vector<double> expected(static_cast<size_t>(trained.parameters.elements()));
    for (int n = 1; n <= 200; ++n) {
      trained.FillGradients(static_cast<uint64_t>(n));
      trained.optimizer->Step(kRate, 0.9);
      const double share = std::max(1 - decay, 10.0 / (n + 9));
      const float *values = trained.parameters.values().const_data_ptr<float>(),
                  *average = trained.average().const_data_ptr<float>();
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += share * (static_cast<double>(values[i]) - expected[i]);
        ASSERT_NEAR(average[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << "update " << n;
      }
      if (n == 1) {
        EXPECT_TRUE(at::equal(trained.average(), trained.parameters.values()));
      }
    }
  }
}

TEST(AverageTest, ChangesNoBitOfTheWeights) {
  Trained with(0.99), without(0);
  EXPECT_FALSE(without.average().defined());
  for (uint64_t step = 1; step <= 20; ++step) {
    for (Trained* trained : {&with, &without}) {
      trained->FillGradients(step);
      trained->optimizer->Step(kRate, 0.9);
    }
  }
  EXPECT_TRUE(at::equal(with.parameters.values(), without.parameters.values()));
  EXPECT_EQ(with.optimizer->state_bytes() - without.optimizer->state_bytes(), 4 * with.parameters.elements());
}

TEST(AverageTest, ADeviceThatSkipsAStepLeavesIt) {
  Trained trained(0.9);
  const auto step = [&](double found_inf, double number) {
    trained.FillGradients(static_cast<uint64_t>(number));
    trained.optimizer->StepOnDevice(kRate, 0.9,
                                    {.divisor = at::full({}, 1.0),
                                     .found_inf = at::full({}, found_inf),
                                     .step = at::full({}, number),
                                     .learning_rate = at::full({}, kRate, at::kDouble)});
  };
  for (double n = 1; n <= 5; ++n) step(0, n);
  const at::Tensor before = trained.average().clone();
  step(1, 5);
  EXPECT_TRUE(at::equal(trained.average(), before));
  step(0, 6);
  EXPECT_FALSE(at::equal(trained.average(), before));
}

}  // namespace
}  // namespace trainwright
