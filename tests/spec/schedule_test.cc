#include "lib/spec/schedule.h"
#include "tests/support/paths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

namespace trainwright {
namespace {

nlohmann::json ReadFixture(const std::string& name) {
  std::ifstream file(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/optim/fixtures/" + name);
  return nlohmann::json::parse(file);
}

TEST(ScheduleTest, RatesAndBetasAreThoseOfPyTorchAndTransformers) {
  const nlohmann::json fixture = ReadFixture("schedules.json");
  const auto peak = fixture.at("peak_lr").get<double>();
  ASSERT_GE(fixture.at("cases").size(), 40u);
  for (const nlohmann::json& expected : fixture.at("cases")) {
    const ScheduleOptions options{.kind = ParseScheduleKind(expected.at("schedule"), "--schedule"),
                                  .peak_lr = peak,
                                  .final_lr_ratio = expected.value("min_lr_ratio", 0.5),
                                  .warmup_steps = expected.at("warmup_steps"),
                                  .decay_steps = expected.value("decay_steps", int64_t{0}),
                                  .total_steps = expected.at("total_steps"),
                                  .cycle_beta1 = expected.contains("beta1")};
    SCOPED_TRACE(expected.at("schedule").get<std::string>() + ", " + expected.at("total_steps").dump() +
                 " steps, warm-up " + expected.at("warmup_steps").dump() + ", decay " +
                 std::to_string(options.decay_steps));
    for (int64_t step = 0; step < options.total_steps; ++step) {
      EXPECT_NEAR(LearningRate(options, step), expected.at("lr").at(step).get<double>(), 1e-12 * peak)
          << "step " << step;
      const double beta1 = expected.contains("beta1") ? expected.at("beta1").at(step).get<double>() : 0.9;
      EXPECT_NEAR(CycledBeta1(options, 0.9, step), beta1, 1e-12) << "step " << step;
    }
  }
}

TEST(ScheduleTest, AWarmUpAsLongAsTheRunEndsAtThePeak) {
  for (const ScheduleKind kind :
       {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine, ScheduleKind::kOneCycle}) {
    for (const int64_t steps : {1, 2, 9}) {
      const ScheduleOptions options{
          .kind = kind, .peak_lr = 2.0, .warmup_steps = static_cast<double>(steps), .total_steps = steps};
      EXPECT_DOUBLE_EQ(LearningRate(options, steps - 1), 2.0) << ScheduleKindName(kind) << ", " << steps;
    }
  }
}

TEST(ScheduleTest, OneCycleFollowsTheRecipesFormula) {
  // S = 1000, p = 0.1, div 25, final div 1e4.
  const ScheduleOptions options{
      .kind = ScheduleKind::kOneCycle, .peak_lr = 3e-4, .warmup_steps = 100, .total_steps = 1000};
  const double low = 3e-4 / 25, end = low / 1e4, pi = std::numbers::pi;
  for (const int64_t k : {0, 1, 50, 98, 99}) {
    const double expected = 3e-4 + (low - 3e-4) * (1 + std::cos(pi * static_cast<double>(k) / 99)) / 2;
    EXPECT_NEAR(LearningRate(options, k), expected, 1e-15) << k;
  }
  for (const int64_t k : {100, 500, 998, 999}) {
    const double r = static_cast<double>(k - 99) / 900;
    EXPECT_NEAR(LearningRate(options, k), end + (3e-4 - end) * (1 + std::cos(pi * r)) / 2, 1e-15) << k;
  }
}

TEST(ScheduleTest, OneCycleOfTenStepsStartsAtThePeak) {
  // A tenth of ten steps is the first step, which is both the lowest and the highest: 0 / 0 in the formula.
  const ScheduleOptions options{.kind = ScheduleKind::kOneCycle,
                                .peak_lr = 1.0,
                                .warmup_steps = 1,
                                .total_steps = 10,
                                .cycle_beta1 = true};
  EXPECT_EQ(LearningRate(options, 0), 1.0);
  EXPECT_EQ(CycledBeta1(options, 0.9, 0), 0.85);
  EXPECT_NEAR(LearningRate(options, 9), 1.0 / 25 / 1e4, 1e-15);
}

TEST(ScheduleTest, WsdIsStableUntilItDecaysByOneMinusSquareRoot) {
  const ScheduleOptions options{.kind = ScheduleKind::kWsd,
                                .peak_lr = 2.0,
                                .final_lr_ratio = 0.25,
                                .warmup_steps = 10,
                                .decay_steps = 16,
                                .total_steps = 100};
  EXPECT_DOUBLE_EQ(LearningRate(options, 4), 1.0);
  for (int64_t step = 9; step < 84; ++step) EXPECT_EQ(LearningRate(options, step), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(options, 87), 2.0 * (1 - 0.75 * 0.5));  // a quarter of the decay
  EXPECT_DOUBLE_EQ(LearningRate(options, 99), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(options, 1000), 0.5);
}

TEST(ScheduleTest, BetaStaysWhereItIsNotCycled) {
  const ScheduleOptions options{.kind = ScheduleKind::kOneCycle, .warmup_steps = 3, .total_steps = 30};
  for (const int64_t step : {0, 2, 29}) EXPECT_EQ(CycledBeta1(options, 0.9, step), 0.9);
}

}  // namespace
}  // namespace trainwright
