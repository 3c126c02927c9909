#include "lib/bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/base/rng.h"

namespace trainwright {
namespace {

std::vector<double> Noise(uint64_t seed, size_t count, double correlation, double deviation) {
  const Rng rng(seed, "noise");
  std::vector<double> values;
  double value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = correlation * value + deviation * std::sqrt(1 - correlation * correlation) * rng.Normal(i);
    values.push_back(value);
  }
  return values;
}

TEST(StatisticsTest, MedianIsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

// Holm 1979: smallest p times m, the next times m - 1, ..., never falling, at most 1.
TEST(StatisticsTest, HolmAdjustsAsInATableByHand) {
  const std::vector<double> adjusted = HolmAdjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected = {0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
  EXPECT_EQ(HolmAdjusted(std::vector<double>{0.9, 0.8}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(HolmAdjusted({}).empty());
}

TEST(StatisticsTest, BlocksAreSingleForIndependentValuesAndLongerForCorrelatedOnes) {
  EXPECT_LE(BootstrapBlockLength(Noise(1, 400, 0, 1)), 2u);
  // Correlation 0.8: (4 * 0.64 / 0.36^2 * 400)^(1/3) = 19.9.
  EXPECT_NEAR(static_cast<double>(BootstrapBlockLength(Noise(1, 400, 0.8, 1))), 20, 6);
  EXPECT_EQ(BootstrapBlockLength(Noise(1, 6, 0.99, 1)) <= 2, true);
  EXPECT_EQ(BootstrapBlockLength(std::vector<double>(9, 1.0)), 1u);
}

TEST(StatisticsTest, TheSameSeedGivesTheSameInterval) {
  const std::vector<double> values = Noise(3, 20, 0, 1);
  const MedianEstimate first = EstimateMedian(values, 5), second = EstimateMedian(values, 5);
  EXPECT_EQ(first.interval.low, second.interval.low);
  EXPECT_EQ(first.interval.high, second.interval.high);
  EXPECT_NE(first.interval.low, EstimateMedian(values, 6, 200).interval.low);
}

int CoveredOf(int samples, double correlation) {
  int covered = 0;
  for (int seed = 0; seed < samples; ++seed) {
    const auto values = Noise(static_cast<uint64_t>(seed), 30, correlation, 0.02);
    covered += EstimateMedian(values, 1, 1000).interval.contains(0) ? 1 : 0;
  }
  return covered;
}

TEST(StatisticsTest, IntervalsCoverTheTruthAboutAsOftenAsTheySay) {
  const int covered = CoveredOf(400, 0);
  EXPECT_GE(covered, 400 * 91 / 100);
  EXPECT_LE(covered, 400 * 99 / 100);
}

// Of independent draws from values with correlation 0.5, about 70 of 100 intervals would cover; short series
// do not show all of their correlation, so blocks mend most of it and not all.
TEST(StatisticsTest, BlocksMendMostOfWhatCorrelationDoesToIntervals) {
  EXPECT_GE(CoveredOf(400, 0.5), 400 * 80 / 100);
}

TEST(StatisticsTest, PValueIsSmallExactlyWhereTheIntervalIsFarFromZero) {
  std::vector<double> values = Noise(2, 25, 0, 0.01);
  EXPECT_GT(EstimateMedian(values, 1).p_value, 0.05);
  for (double& value : values) value += 0.05;
  const MedianEstimate shifted = EstimateMedian(values, 1);
  EXPECT_LT(shifted.p_value, 0.001);
  EXPECT_GT(shifted.p_value, 0);
  EXPECT_GT(shifted.interval.low, 0);
}

// By Simpson's rule on the density; the bounds are those of printed tables: 12.706, 4.303, 3.182, 2.776, ...
TEST(StatisticsTest, StudentsTHasTheTailsAndBoundsOfTables) {
  struct Row {
    size_t degrees;
    double tails, bound;
  };
  for (const Row& row :
       {Row{1, 0.2951672353008665, 12.706204736174698}, Row{2, 0.183503419072274, 4.302652729749464},
        Row{3, 0.13932596855884307, 3.182446305283708}, Row{4, 0.1161165235168156, 2.7764451051977934},
        Row{5, 0.1019394788298583, 2.5705818356363146}, Row{6, 0.092426311531675, 2.446911851144979},
        Row{10, 0.0733880347707403, 2.228138851986274}, Row{30, 0.0546250449629831, 2.042272456301238}}) {
    EXPECT_NEAR(StudentTails(2, row.degrees), row.tails, 1e-12) << row.degrees;
    EXPECT_NEAR(StudentTails(-2, row.degrees), row.tails, 1e-12) << row.degrees;
    EXPECT_NEAR(StudentBound(0.05, row.degrees), row.bound, 1e-9) << row.degrees;
  }
}

TEST(StatisticsTest, IntervalsOfFewValuesCoverTheTruthAsOftenAsTheySay) {
  for (size_t count = 2; count < kFewestBootstrapped; ++count) {
    int covered = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      covered += EstimateMedian(Noise(seed, count, 0, 0.02), 1).interval.contains(0) ? 1 : 0;
    }
    EXPECT_GE(covered, 925) << count;
    EXPECT_LE(covered, 975) << count;
  }
}

TEST(StatisticsTest, IntervalsOfFewValuesAgreeWithTheirPValues) {
  for (size_t count = 2; count < kFewestBootstrapped; ++count) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const auto values = Noise(seed, count, 0, 0.02);
      const MedianEstimate estimate = EstimateMedian(values, 1);
      EXPECT_EQ(estimate.interval.contains(0), estimate.p_value > 0.05) << count << ", seed " << seed;
      EXPECT_TRUE(estimate.interval.contains(estimate.median)) << count << ", seed " << seed;
    }
  }
}

TEST(StatisticsTest, FewValuesThatAreEqualHaveThatIntervalAndNoDoubt) {
  const MedianEstimate estimate = EstimateMedian(std::vector<double>(4, std::log(5)), 1);
  EXPECT_EQ(estimate.interval.low, std::log(5));
  EXPECT_EQ(estimate.interval.high, std::log(5));
  EXPECT_EQ(estimate.p_value, 0);
  EXPECT_EQ(EstimateMedian(std::vector<double>(4, 0.0), 1).p_value, 1);
}

TEST(StatisticsTest, APValueIsNotBelowThatOfTheSignsUnlessStudentsIs) {
  // One of 128 series without a change lies on one side.
  std::vector<double> values = {1, 1, 1, 1, 1, 1, 1, 30};
  EXPECT_DOUBLE_EQ(EstimateMedian(values, 1).p_value, 2.0 / 256);
  values.back() = 1.1;
  EXPECT_LT(EstimateMedian(values, 1).p_value, 0.001);
}

TEST(StatisticsTest, OutliersAreFoundAndOrdinarySpreadIsNot) {
  std::vector<double> values = Noise(4, 30, 0, 1);
  for (double& value : values) value = std::clamp(value, -2.0, 2.0);
  EXPECT_TRUE(OutlierIndices(values).empty());
  values[7] = 40;
  EXPECT_EQ(OutlierIndices(values), (std::vector<size_t>{7}));
  EXPECT_TRUE(OutlierIndices(std::vector<double>(10, 2.0)).empty());
}

}  // namespace
}  // namespace trainwright
