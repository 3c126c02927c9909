#include "lib/eval/retrieval_report.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

/// Two queries: MAP of 0 and 1, nDCG@10 of 0.5 each.
RankingScores TwoQueries() {
  RankingScores scores;
  scores.measures = {"ndcg_at_10", "map"};
  scores.queries = {"q1", "q2"};
  scores.values = {0.5, 0, 0.5, 1};
  return scores;
}

TEST(RetrievalReportTest, EachMeasureIsItsMean) {
  const nlohmann::ordered_json described = DescribeScores(TwoQueries(), /*draws=*/0, /*seed=*/1);
  EXPECT_EQ(described, (nlohmann::ordered_json{{"ndcg_at_10", 0.5}, {"map", 0.5}}));
}

TEST(RetrievalReportTest, IntervalsAreAsWideAsQueriesDiffer) {
  const nlohmann::ordered_json described = DescribeScores(TwoQueries(), /*draws=*/200, /*seed=*/1);
  EXPECT_EQ(described["ndcg_at_10_interval"], (nlohmann::ordered_json{0.5, 0.5}));
  EXPECT_EQ(described["map_interval"], (nlohmann::ordered_json{0.0, 1.0}));
}

}  // namespace
}  // namespace trainwright
