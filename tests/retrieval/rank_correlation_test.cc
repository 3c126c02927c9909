#include "lib/retrieval/rank_correlation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(RankCorrelationTest, EqualValuesShareTheMeanOfTheirRanks) {
  EXPECT_THAT(AverageRanks(std::vector<double>{3, 1, 3, 0, 3}), testing::ElementsAre(4, 2, 4, 1, 4));
  EXPECT_THAT(AverageRanks({}), testing::IsEmpty());
}

TEST(RankCorrelationTest, ALineHasTheCorrelationOne) {
  const std::vector<double> x = {1, 2, 4, 8}, up = {-1, 1, 5, 13}, down = {8, 4, 2, 1};
  EXPECT_DOUBLE_EQ(PearsonCorrelation(x, up), 1);
  EXPECT_DOUBLE_EQ(SpearmanCorrelation(x, down), -1);
  EXPECT_LT(std::abs(PearsonCorrelation(x, down)), 1) << "falling, but no line";
}

TEST(RankCorrelationTest, WithoutSpreadThereIsNone) {
  const std::vector<double> x = {1, 2, 3}, constant = {0.1, 0.1, 0.1};
  EXPECT_TRUE(std::isnan(PearsonCorrelation(x, constant)));
  EXPECT_TRUE(std::isnan(SpearmanCorrelation(constant, x)));
  EXPECT_TRUE(std::isnan(PearsonCorrelation(std::vector<double>{1}, std::vector<double>{1})));
  EXPECT_TRUE(std::isnan(SpearmanCorrelation(x, std::vector<double>{1, std::nan(""), 2})));
}

TEST(RankCorrelationTest, ScoresOfAnySizeCorrelate) {
  // Of 1, 2, 4, 8 with 3, 1, 4, 1 the sums of products and of squares are -4.75, 28.75 and 6.75.
  const double expected = -4.75 / std::sqrt(28.75 * 6.75);
  for (const double unit : {1.0, 1e200, 1e307, 1e-200, 1e-300}) {
    const std::vector<double> x = {1 * unit, 2 * unit, 4 * unit, 8 * unit}, y = {3, 1, 4, 1};
    EXPECT_NEAR(PearsonCorrelation(x, y), expected, 1e-12) << unit;
    EXPECT_NEAR(PearsonCorrelation(y, x), expected, 1e-12) << unit;
  }
  const std::vector<double> far = {1e15 + 1, 1e15 + 2, 1e15 + 4, 1e15 + 8}, y = {3, 1, 4, 1};
  EXPECT_NEAR(PearsonCorrelation(far, y), expected, 1e-12);
}

TEST(RankCorrelationTest, RandomValuesWithTiesCorrelateAsInScipy) {
  const auto fixture =
      nlohmann::json::parse(test::ReadFile(test::Fixture("retrieval/fixtures/correlation.json")));
  ASSERT_GT(fixture["cases"].size(), 30u);
  for (const nlohmann::json& expected : fixture["cases"]) {
    const auto x = expected["x"].get<std::vector<double>>(), y = expected["y"].get<std::vector<double>>();
    EXPECT_NEAR(PearsonCorrelation(x, y), expected["pearson"].get<double>(), 1e-12);
    EXPECT_NEAR(SpearmanCorrelation(x, y), expected["spearman"].get<double>(), 1e-12);
  }
}

}  // namespace
}  // namespace trainwright
