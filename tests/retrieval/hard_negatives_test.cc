#include "lib/retrieval/hard_negatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace trainwright {
namespace {

using testing::ElementsAre;

const std::vector<ScoredRow> kRanking = {{4, 0.9F}, {2, 0.8F}, {7, 0.7F}, {1, 0.6F}, {3, 0.5F}};

TEST(ChooseNegativesTest, TakesTheNearestThatAreNotItsOwn) {
  EXPECT_THAT(ChooseNegatives(kRanking, {2}, 1, {.negatives = 3, .relative_margin = 0}),
              ElementsAre(4, 7, 1));
}

TEST(ChooseNegativesTest, CountsPlacesWithoutItsOwn) {
  EXPECT_THAT(ChooseNegatives(kRanking, {4}, 1, {.first_place = 2, .last_place = 3, .relative_margin = 0}),
              ElementsAre(7, 1));
}

TEST(ChooseNegativesTest, LeavesOutWhatScoresNearlyAsThePositive) {
  EXPECT_THAT(ChooseNegatives(kRanking, {}, 0.85, {.negatives = 2, .relative_margin = 0.1}),
              ElementsAre(7, 1))
      << "0.765 at most";
  EXPECT_THAT(ChooseNegatives(kRanking, {}, 0.5, {.relative_margin = 0.01}), ElementsAre())
      << "0.495 at most";
}

TEST(ChooseNegativesTest, TheMarginOfANegativeScoreLiesBelowIt) {
  const std::vector<ScoredRow> ranking = {{0, -0.52F}, {1, -0.6F}};
  EXPECT_THAT(ChooseNegatives(ranking, {}, -0.5, {.relative_margin = 0.1}), ElementsAre(1))
      << "-0.55 at most";
}

}  // namespace
}  // namespace trainwright
