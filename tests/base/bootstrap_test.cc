#include "lib/base/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace trainwright {
namespace {

TEST(BootstrapTest, SamplesHoldEachNumberEquallyOften) {
  constexpr size_t kCount = 7;
  constexpr int kDraws = 20000;
  BootstrapSamples samples(kCount, 1, 3);
  std::map<size_t, int> times;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (const size_t index : samples.Next()) ++times[index];
  }
  ASSERT_EQ(times.size(), kCount);
  for (const auto& [index, count] : times) {
    EXPECT_LT(index, kCount);
    EXPECT_NEAR(count, kDraws, 6 * std::sqrt(kDraws)) << "six deviations of a Poisson count";
  }
}

TEST(BootstrapTest, BlocksAreNeighboursThatGoRound) {
  BootstrapSamples samples(9, 3, 5);
  for (int draw = 0; draw < 100; ++draw) {
    const std::span<const size_t> sample = samples.Next();
    for (size_t i = 0; i < sample.size(); ++i) {
      if (i % 3 != 0) {
        EXPECT_EQ(sample[i], (sample[i - 1] + 1) % 9);
      }
    }
  }
}

TEST(BootstrapTest, TheMiddleLeavesOneFortiethOutAtEachEnd) {
  std::vector<double> values(41);
  std::iota(values.rbegin(), values.rend(), 0.0);
  const Interval interval = MiddleInterval(values);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 39);
}

/// For the mean of n values the bootstrap's interval is that of the normal distribution, as n grows.
TEST(BootstrapTest, TheIntervalOfAMeanIsThatOfItsStandardError) {
  constexpr size_t kCount = 400;
  const Rng rng(1, "values");
  std::vector<double> values;
  for (size_t i = 0; i < kCount; ++i) values.push_back(2 + 3 * rng.Normal(i));
  const auto mean_of = [&](std::span<const size_t> sample) {
    double sum = 0;
    for (const size_t i : sample) sum += values[i];
    return sum / static_cast<double>(sample.size());
  };
  const Interval interval = BootstrapInterval(kCount, 4000, 7, mean_of);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / kCount;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / kCount / kCount);
  EXPECT_NEAR(interval.low, mean - 1.96 * error, 0.15 * error);
  EXPECT_NEAR(interval.high, mean + 1.96 * error, 0.15 * error);
}

TEST(BootstrapTest, TheSameSeedGivesTheSameInterval) {
  const auto first_of = [](std::span<const size_t> sample) { return static_cast<double>(sample[0]); };
  const Interval once = BootstrapInterval(50, 200, 7, first_of),
                 again = BootstrapInterval(50, 200, 7, first_of);
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
}

TEST(BootstrapTest, DrawsWithoutANumberAreLeftOut) {
  const auto undefined = [](std::span<const size_t>) { return std::nan(""); };
  EXPECT_TRUE(std::isnan(BootstrapInterval(5, 10, 1, undefined).low));
  const auto sometimes = [](std::span<const size_t> sample) { return sample[0] == 0 ? std::nan("") : 4.0; };
  EXPECT_EQ(BootstrapInterval(3, 50, 1, sometimes).high, 4);
}

}  // namespace
}  // namespace trainwright
