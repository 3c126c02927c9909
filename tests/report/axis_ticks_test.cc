#include "lib/report/axis_ticks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using Labels = std::vector<std::string>;

TEST(LinearTicks, AreRoundNumbersInReadableUnits) {
  EXPECT_EQ(LinearTicks(0, 1, 4).labels, (Labels{"0", "0.5", "1.0"}));
  EXPECT_EQ(LinearTicks(2.9, 10.3, 9).labels, (Labels{"3", "4", "5", "6", "7", "8", "9", "10"}));
  EXPECT_EQ(LinearTicks(0, 6000, 4).labels, (Labels{"0", "2,000", "4,000", "6,000"}));
  EXPECT_EQ(LinearTicks(0, 20000, 5).labels, (Labels{"0", "5k", "10k", "15k", "20k"}));
}

TEST(LinearTicks, SmallNumbersShareAPowerOfAThousand) {
  const AxisTicks ticks = LinearTicks(0, 0.003, 4);
  EXPECT_EQ(ticks.labels, (Labels{"0", "1", "2", "3"}));
  EXPECT_EQ(ticks.exponent, -3);
}

TEST(LinearTicks, StepsOfARunAreWhole) {
  EXPECT_EQ(LinearTicks(0, 1, 9, /*whole=*/true).labels, (Labels{"0", "1"}));
  EXPECT_EQ(LinearTicks(0, 3, 9, /*whole=*/true).labels, (Labels{"0", "1", "2", "3"}));
}

TEST(LinearTicks, LieInsideDifferInTextAndAreNotTooMany) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("TRAINWRIGHT_TEST_SEED=" + std::to_string(test::TestSeed()));
  std::uniform_real_distribution<double> exponent(-9, 12), part(-1, 1);
  for (int round = 0; round < 20000; ++round) {
    const double low = part(random) * std::pow(10, exponent(random));
    const double high = low + std::max(std::pow(10, exponent(random)), std::abs(low) * 1e-6);
    const int most = 2 + round % 9;
    const AxisTicks ticks = LinearTicks(low, high, most);
    ASSERT_LE(ticks.values.size(), static_cast<size_t>(most)) << low << " " << high;
    ASSERT_GE(ticks.values.size(), 1u) << low << " " << high << " " << most;
    for (const double value : ticks.values) ASSERT_TRUE(low <= value && value <= high) << value;
    ASSERT_EQ(std::set<std::string>(ticks.labels.begin(), ticks.labels.end()).size(), ticks.values.size())
        << low << " " << high << " " << most << " " << ticks.labels.front();
  }
}

TEST(LogTicks, AreOneTwoFiveOrPowersOfTen) {
  EXPECT_EQ(LogTicks(3, 450, 10).labels, (Labels{"5", "10", "20", "50", "100", "200"}));
  EXPECT_EQ(LogTicks(0.5, 2e6, 5).labels, (Labels{"1", "100", "1e4", "1e6"}));
}

}  // namespace
}  // namespace trainwright
