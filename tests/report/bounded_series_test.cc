#include "lib/report/bounded_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::Contains;

TEST(BoundedSeries, KeepsEveryPointOfAShortSeries) {
  BoundedSeries series(8);
  std::vector<PlotPoint> added;
  for (int x = 0; x < 8; ++x) series.Add(x, x * x), added.push_back({1.0 * x, 1.0 * x * x});
  EXPECT_EQ(series.Points(), added);
}

TEST(BoundedSeries, KeepsEndsAndExtremesOfAnyLengthInBoundedSpace) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("TRAINWRIGHT_TEST_SEED=" + std::to_string(test::TestSeed()));
  for (const int count : {9, 100, 12345}) {
    BoundedSeries series(8);
    PlotPoint lowest = {0, 1e9}, highest = {0, -1e9};
    for (int x = 0; x < count; ++x) {
      const double y = std::uniform_real_distribution<double>(-1, 1)(random);
      series.Add(x, y);
      if (y < lowest.y) lowest = {1.0 * x, y};
      if (y > highest.y) highest = {1.0 * x, y};
    }
    const std::vector<PlotPoint> points = series.Points();
    EXPECT_LE(points.size(), 4u * 8);
    EXPECT_EQ(points.front().x, 0);
    EXPECT_EQ(points.back().x, count - 1);
    EXPECT_THAT(points, Contains(lowest));
    EXPECT_THAT(points, Contains(highest));
    EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](auto a, auto b) { return a.x < b.x; }));
    EXPECT_EQ(series.count(), static_cast<uint64_t>(count));
  }
}

TEST(BoundedSeries, LeavesOutWhatIsNotFinite) {
  BoundedSeries series(8);
  for (const double y : {1.0, static_cast<double>(NAN), static_cast<double>(INFINITY), 2.0}) series.Add(1, y);
  EXPECT_EQ(series.count(), 2u);
}

TEST(BoundedSeries, SmoothingKeepsAConstantAndDampsNoise) {
  BoundedSeries constant(400), noise(400);
  for (int x = 0; x < 400; ++x) constant.Add(x, 3), noise.Add(x, x % 2 ? 1 : -1);
  for (const PlotPoint& point : constant.Smoothed(10)) EXPECT_DOUBLE_EQ(point.y, 3);
  const std::vector<PlotPoint> smooth = noise.Smoothed(19);
  ASSERT_EQ(smooth.size(), 400u);
  // The average of +-1 with weight 2 / (19 + 1) alternates between +-a, a = 0.1 / 1.9.
  EXPECT_NEAR(std::abs(smooth.back().y), 0.1 / 1.9, 1e-3);
}

}  // namespace
}  // namespace trainwright
