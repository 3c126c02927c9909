#include "lib/bench/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/base/rng.h"
#include "lib/bench/bench_job.h"

namespace trainwright {
namespace {

/// Rounds of before, after and control around 1 s, with noise and an effect on after.
Measurement Made(uint64_t seed, int rounds, double effect, double noise, double drift = 0) {
  const Rng rng(seed, "made");
  Measurement measurement;
  measurement.names = {"before", "after", "control"};
  uint64_t counter = 0;
  for (int i = 0; i < rounds; ++i) {
    Round round;
    round.runs.resize(3);
    for (int run = 0; run < 6; ++run) {
      const int variant = run < 3 ? run : 5 - run;
      const double log_time =
          (variant == 1 ? effect : 0) + noise * rng.Normal(counter++) + drift * (6 * i + run);
      round.runs[variant].push_back({{"wall_s", std::exp(log_time)}, {"tokens_per_s", std::exp(-log_time)}});
    }
    measurement.rounds.push_back(round);
  }
  return measurement;
}

Comparison CompareMade(const Measurement& measurement, const std::string& metric = "wall_s") {
  return Compare(measurement, 0, 1, metric, {}).value();
}

TEST(ComparisonTest, SaysSlowerForMoreTimeAndFasterForLess) {
  EXPECT_EQ(CompareMade(Made(1, 12, 0.1, 0.01)).verdict, Verdict::kSlower);
  EXPECT_EQ(CompareMade(Made(1, 12, -0.1, 0.01)).verdict, Verdict::kFaster);
}

TEST(ComparisonTest, MoreOfARateIsFaster) {
  EXPECT_EQ(CompareMade(Made(1, 12, -0.1, 0.01), "tokens_per_s").verdict, Verdict::kFaster);
  EXPECT_EQ(CompareMade(Made(1, 12, 0.1, 0.01), "tokens_per_s").verdict, Verdict::kSlower);
}

TEST(ComparisonTest, ANumberIsJudgedAlikeWithAnyMark) {
  for (const std::string& mark :
       {std::string(), std::string("mean:"), std::string("p99:"), std::string("final:")}) {
    EXPECT_TRUE(HigherIsBetter(mark + "mfu")) << mark;
    EXPECT_TRUE(HigherIsBetter(mark + "gpu_util")) << mark;
    EXPECT_TRUE(HigherIsBetter(mark + "tokens_per_s")) << mark;
    EXPECT_FALSE(HigherIsBetter(mark + "loss_nats")) << mark;
    EXPECT_EQ(VerdictName(Verdict::kSlower, mark + "step_time_s"), "slower") << mark;
    EXPECT_EQ(VerdictName(Verdict::kSlower, mark + "loss_nats"), "worse") << mark;
  }
}

TEST(ComparisonTest, SaysSameOnlyWhenTheWholeIntervalLiesInTheBand) {
  EXPECT_EQ(CompareMade(Made(1, 30, 0.002, 0.002)).verdict, Verdict::kSame);
  EXPECT_EQ(CompareMade(Made(1, 8, 0, 0.05)).verdict, Verdict::kUndecided);
}

TEST(ComparisonTest, ADriftThatIsLinearOverARoundFallsOut) {
  const Comparison drifting = CompareMade(Made(1, 12, 0.05, 1e-9, 0.02));
  EXPECT_NEAR(drifting.ratio(), std::exp(0.05), 1e-6);
}

// The tool's main promise, in noise of 2 %: of 200 comparisons of equals at most 16 say different, and an
// effect of 5 % is found at least 9 times of 10.
TEST(ComparisonTest, EqualsAreSeldomCalledDifferentAndFivePercentIsFound) {
  int false_alarms = 0, found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Verdict equal = CompareMade(Made(seed, 10, 0, 0.02)).verdict;
    false_alarms += equal == Verdict::kFaster || equal == Verdict::kSlower ? 1 : 0;
    found += CompareMade(Made(seed, 10, std::log(1.05), 0.02)).verdict == Verdict::kSlower ? 1 : 0;
  }
  EXPECT_LE(false_alarms, 16);
  EXPECT_GE(found, 180);
}

TEST(ComparisonTest, EqualsAreSeldomCalledDifferentAfterFewRoundsEither) {
  for (const int rounds : {2, 3, 5, 7}) {
    int false_alarms = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      const Verdict equal = CompareMade(Made(seed, rounds, 0, 0.02)).verdict;
      false_alarms += equal == Verdict::kFaster || equal == Verdict::kSlower ? 1 : 0;
    }
    EXPECT_LE(false_alarms, 20) << rounds;
  }
}

TEST(ComparisonTest, TwoRoundsOnTheSameSideDecideNothing) {
  Measurement measurement;
  for (const double after_s : {1.0185, 1.0444}) {
    const Sample one = {{"wall_s", 1}}, after = {{"wall_s", after_s}};
    measurement.rounds.push_back({.runs = {{one, one}, {after, after}, {one, one}}});
  }
  const Comparison comparison = CompareMade(measurement);
  EXPECT_EQ(comparison.verdict, Verdict::kUndecided);
  EXPECT_NEAR(comparison.log_ratio.p_value, 0.246, 0.001);
}

TEST(ComparisonTest, ADifferenceWithinWhatTheControlShowsIsUndecided) {
  Measurement measurement = Made(1, 10, 0.04, 0.001);
  for (Round& round : measurement.rounds) {
    for (Sample& run : round.runs.back()) run["wall_s"] *= 1.06;  // a machine that favours one position
  }
  EXPECT_EQ(CompareMade(measurement).verdict, Verdict::kUndecided);
}

TEST(ComparisonTest, AMetricThatARunLacksOrThatIsZeroIsNotCompared) {
  Measurement measurement = Made(1, 8, 0, 0.01);
  EXPECT_FALSE(Compare(measurement, 0, 1, "absent", {}));
  measurement.rounds[3].runs[1][0]["wall_s"] = 0;
  EXPECT_FALSE(Compare(measurement, 0, 1, "wall_s", {}));
}

TEST(ComparisonTest, OutliersStayInAndAreToldApart) {
  Measurement measurement = Made(1, 12, 0, 0.01);
  measurement.rounds[5].runs[1][0]["wall_s"] = 30;
  const Comparison comparison = CompareMade(measurement);
  EXPECT_EQ(comparison.outlier_rounds, (std::vector<size_t>{5}));
  ASSERT_TRUE(comparison.without_outliers);
  EXPECT_NE(comparison.without_outliers->median, comparison.log_ratio.median);
}

TEST(ComparisonTest, HolmTakesBackADifferenceThatManyComparisonsMakeLikely) {
  std::vector<Comparison> comparisons(20);
  std::vector<Comparison*> pointers;
  for (Comparison& comparison : comparisons) {
    comparison.log_ratio.p_value = 0.6;
    pointers.push_back(&comparison);
  }
  comparisons[3].log_ratio.p_value = 0.01;
  comparisons[3].verdict = Verdict::kSlower;
  CorrectTogether({&comparisons[3]});
  EXPECT_EQ(comparisons[3].verdict, Verdict::kSlower);
  CorrectTogether(pointers);
  EXPECT_EQ(comparisons[3].verdict, Verdict::kUndecided);
}

BenchRow RowOf(const Comparison& comparison) {
  BenchRow row;
  row.comparisons = {comparison};
  return row;
}

TEST(ComparisonTest, ExitStatusIsThatOfTheWorstRow) {
  const BenchRow slower = RowOf(CompareMade(Made(1, 12, 0.1, 0.01))),
                 same = RowOf(CompareMade(Made(1, 30, 0, 0.002))),
                 undecided = RowOf(CompareMade(Made(1, 8, 0, 0.05)));
  EXPECT_EQ(ExitStatusOf({same}, std::nullopt), 0);
  EXPECT_EQ(ExitStatusOf({same, undecided}, std::nullopt), 7);
  EXPECT_EQ(ExitStatusOf({undecided, slower}, std::nullopt), 1);
  EXPECT_EQ(ExitStatusOf({slower}, 0.5), 0);
  EXPECT_EQ(ExitStatusOf({slower}, 0.02), 1);
  EXPECT_EQ(ExitStatusOf({undecided}, 0.01), 7);
  EXPECT_EQ(ExitStatusOf({undecided}, 0.9), 0);
}

TEST(ComparisonTest, ARegressionIsAsLargeAsThePrintedPercentOfARateToo) {
  // 5 % fewer tokens a second take 5.26 % more time.
  const Measurement made = Made(1, 12, -std::log(0.95), 1e-5);
  const BenchRow rate = RowOf(CompareMade(made, "tokens_per_s")), time = RowOf(CompareMade(made));
  EXPECT_EQ(ExitStatusOf({rate}, 0.049), 1);
  EXPECT_EQ(ExitStatusOf({rate}, 0.051), 0);
  EXPECT_EQ(ExitStatusOf({rate}, 1.5), 0);
  EXPECT_EQ(ExitStatusOf({time}, 0.051), 1);
  EXPECT_EQ(ExitStatusOf({time}, 0.054), 0);
}

TEST(ComparisonTest, NoRegressionCountsThatIsSmallerThanTheControlsNoise) {
  Comparison comparison = CompareMade(Made(1, 12, 0.1, 0.01));
  EXPECT_EQ(ExitStatusOf({RowOf(comparison)}, 0.02), 1);
  comparison.noise_floor = 0.2;
  EXPECT_EQ(ExitStatusOf({RowOf(comparison)}, 0.02), 7);
  EXPECT_EQ(ExitStatusOf({RowOf(comparison)}, 0.5), 0);
}

}  // namespace
}  // namespace trainwright
