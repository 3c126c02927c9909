#include "lib/machine/repeated_rate.h"

#include <gtest/gtest.h>

#include "lib/machine/measurement.h"

namespace trainwright {
namespace {

/// A clock that only work moves.
struct FakeClock {
  double time_s = 0;
  std::vector<double> run_times_s;  ///< of one run after the other; the last stays
  size_t runs = 0;

  RateWork Work(double amount) {
    return {.amount = amount,
            .run = [this] { time_s += run_times_s[std::min(runs++, run_times_s.size() - 1)]; },
            .finish = {}};
  }
  std::function<double()> now() {
    return [this] { return time_s; };
  }
};

TEST(MeasureRateTest, TellsBestMedianAndSpreadOfTheSamplesBehindTheWarmUp) {
  // One run warms up; samples of 1, 1/2, 1/3, 1/4 and 1/5 s are rates of 1 to 5.
  FakeClock clock{.run_times_s = {100, 1, 0.5, 1 / 3.0, 0.25, 0.2}};
  const Rate rate = MeasureRate(clock.Work(1), {.time_s = 2.2, .warmup_s = 50}, clock.now());
  EXPECT_EQ(rate.samples, 5);
  EXPECT_DOUBLE_EQ(rate.warmup_s, 100);
  EXPECT_NEAR(rate.best, 5, 1e-9);
  EXPECT_NEAR(rate.median, 3, 1e-9);
  EXPECT_NEAR(rate.spread.value(), (4.0 - 2.0) / 3, 1e-9);  // quartiles of 1 2 3 4 5 are 2 and 4
}

TEST(MeasureRateTest, WarmsUpBothForItsTimeAndForItsRuns) {
  FakeClock clock{.run_times_s = {0.01}};
  EXPECT_NEAR(MeasureRate(clock.Work(1), {.time_s = 0.1, .warmup_s = 0.5}, clock.now()).warmup_s, 0.5, 0.011);
  EXPECT_NEAR(MeasureRate(clock.Work(1), {.time_s = 0.1, .warmup_s = 0, .least_warmup_runs = 70}, clock.now())
                  .warmup_s,
              0.7, 1e-9);
}

TEST(MeasureRateTest, RepeatsShortWorkUntilASampleIsLongEnoughToTime) {
  FakeClock clock{.run_times_s = {1e-5}};
  const Rate rate =
      MeasureRate(clock.Work(3), {.time_s = 0.01, .warmup_s = 0.001, .least_sample_s = 1e-3}, clock.now());
  EXPECT_NEAR(rate.time_s / rate.samples, 1e-3, 2e-5);
  EXPECT_NEAR(rate.median, 3e5, 1e-3);
}

TEST(MeasureRateTest, TakesFourSamplesOfWorkThatOutlastsTheBudgetAndNeverMoreThanAllowed) {
  FakeClock slow{.run_times_s = {10}};
  EXPECT_EQ(MeasureRate(slow.Work(1), {.time_s = 1}, slow.now()).samples, 4);
  FakeClock bounded{.run_times_s = {0.001}};
  const Rate rate =
      MeasureRate(bounded.Work(1), {.time_s = 9, .warmup_s = 0, .most_samples = 3}, bounded.now());
  EXPECT_EQ(rate.samples, 3);
  EXPECT_FALSE(rate.spread.has_value());  // three samples tell no quartiles
  EXPECT_FALSE(IsSteady(rate));
}

TEST(IsSteadyTest, HoldsUpToAFifth) {
  Rate rate;
  rate.spread = 0.2;
  EXPECT_TRUE(IsSteady(rate));
  rate.spread = 0.201;
  EXPECT_FALSE(IsSteady(rate));
}

}  // namespace
}  // namespace trainwright
