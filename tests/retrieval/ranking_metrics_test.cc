#include "lib/retrieval/ranking_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace trainwright {
namespace {

RankingScores Score(const Qrels& qrels, const RetrievalRun& run, MetricOptions options = {}) {
  RetrievalRun sorted = run;
  for (auto& [query, ranking] : sorted) SortRanking(&ranking);
  return ScoreRun(qrels, sorted, options);
}

double ValueOf(const RankingScores& scores, const std::string& measure, size_t query = 0) {
  return scores.ValuesOf(scores.MeasureOf(measure)).at(query);
}

/// Two relevant documents, b of grade 2 at place 2 and d of grade 1 at place 4, and one that is not found.
const Qrels kQrels = {{"q", {{"a", 0}, {"b", 2}, {"d", 1}, {"z", 1}}}};
const RetrievalRun kRun = {{"q", {{"a", 4}, {"b", 3}, {"c", 2}, {"d", 1}}}};

TEST(RankingMetricsTest, NdcgIsTheDiscountedGainOverTheBestPossible) {
  const RankingScores scores = Score(kQrels, kRun);
  const double third = 1 / std::log2(3), fifth = 1 / std::log2(5);
  EXPECT_EQ(ValueOf(scores, "ndcg_at_1"), 0);
  EXPECT_DOUBLE_EQ(ValueOf(scores, "ndcg_at_3"), 2 * third / (2 + third + 0.5));
  EXPECT_DOUBLE_EQ(ValueOf(scores, "ndcg_at_5"), (2 * third + fifth) / (2 + third + 0.5));
}

TEST(RankingMetricsTest, TheExponentialGainOfAGradeIsAPowerOfTwoLessOne) {
  const RankingScores scores = Score(kQrels, kRun, {.gain = Gain::kExponential});
  const double third = 1 / std::log2(3), fifth = 1 / std::log2(5);
  EXPECT_DOUBLE_EQ(ValueOf(scores, "ndcg_at_5"), (3 * third + fifth) / (3 + third + 0.5));
}

TEST(RankingMetricsTest, RecallIsOfAllRelevantDocuments) {
  const RankingScores scores = Score(kQrels, kRun);
  EXPECT_EQ(ValueOf(scores, "recall_at_1"), 0);
  EXPECT_DOUBLE_EQ(ValueOf(scores, "recall_at_3"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(ValueOf(scores, "recall_at_100"), 2.0 / 3);
}

TEST(RankingMetricsTest, TheReciprocalRankIsThatOfTheCutRun) {
  const RankingScores scores = Score(kQrels, kRun);
  EXPECT_EQ(ValueOf(scores, "mrr_at_1"), 0);
  EXPECT_EQ(ValueOf(scores, "mrr_at_3"), 0.5);
}

TEST(RankingMetricsTest, AveragePrecisionIsOfTheWholeRanking) {
  EXPECT_DOUBLE_EQ(ValueOf(Score(kQrels, kRun), "map"), (1.0 / 2 + 2.0 / 4) / 3);
}

TEST(RankingMetricsTest, AmongEqualScoresTheLaterNameGoesFirst) {
  const Qrels qrels = {{"q", {{"a", 1}}}};
  EXPECT_EQ(ValueOf(Score(qrels, {{"q", {{"a", 1}, {"b", 1}}}}), "mrr_at_10"), 0.5);
  EXPECT_EQ(ValueOf(Score(qrels, {{"q", {{"a", 1}, {"A", 1}}}}), "mrr_at_10"), 1) << "by bytes";
  EXPECT_EQ(ValueOf(Score(qrels, {{"q", {{"a", 1}, {"\xC3\xA9", 1}}}}), "mrr_at_10"), 0.5)
      << "bytes are not negative";
}

TEST(RankingMetricsTest, TheMeanIsOverQueriesThatRunAndJudgementsHaveInCommon) {
  const Qrels qrels = {{"found", {{"a", 1}}}, {"missing", {{"a", 1}}}};
  const RetrievalRun run = {{"found", {{"a", 1}}}, {"unknown", {{"a", 1}}}};
  const RankingScores scores = Score(qrels, run);
  EXPECT_THAT(scores.queries, testing::ElementsAre("found"));
  EXPECT_EQ(scores.Mean(scores.MeasureOf("ndcg_at_10")), 1);
  EXPECT_EQ(scores.queries_of_run, 2u);
  EXPECT_EQ(scores.queries_judged, 2u);
  EXPECT_EQ(scores.queries_in_common, 1u);
}

TEST(RankingMetricsTest, OnRequestQueriesThatTheRunLacksCountAsNothing) {
  const Qrels qrels = {{"found", {{"a", 1}}}, {"missing", {{"a", 1}}}};
  const RankingScores scores = Score(qrels, {{"found", {{"a", 1}}}}, {.averaged = AveragedQueries::kAll});
  EXPECT_THAT(scores.queries, testing::ElementsAre("found", "missing"));
  EXPECT_EQ(scores.Mean(scores.MeasureOf("ndcg_at_10")), 0.5);
}

TEST(RankingMetricsTest, AQueryWithoutRelevantDocumentsScoresNothingAndIsCounted) {
  const Qrels qrels = {{"q", {{"a", 0}, {"b", -1}}}, {"r", {{"a", 1}}}};
  const RankingScores scores = Score(qrels, {{"q", {{"a", 1}}}, {"r", {{"a", 1}}}});
  EXPECT_EQ(scores.queries_without_relevant, 1u);
  for (size_t measure = 0; measure < scores.measures.size(); ++measure) {
    EXPECT_EQ(scores.ValuesOf(measure)[0], 0) << scores.measures[measure];
  }
  EXPECT_EQ(scores.Mean(scores.MeasureOf("mrr_at_1")), 0.5);
}

TEST(RankingMetricsTest, WithoutAnyJudgedQueryThereIsNothingToMeasure) {
  EXPECT_EQ(test::CodeOf([] { Score({{"q", {{"a", 1}}}}, {{"r", {{"a", 1}}}}); }), ErrorCode::kBadInput);
}

TEST(RankingMetricsTest, CutsAreRisingPlaces) {
  EXPECT_THAT(ParseCuts("1,10,100"), testing::ElementsAre(1, 10, 100));
  EXPECT_THAT(ParseCuts("7"), testing::ElementsAre(7));
  for (const char* text : {"", "0", "-1", "1,", ",1", "1,1", "10,5", "1;2", "x", "99999999999999999999"}) {
    EXPECT_EQ(test::CodeOf([&] { ParseCuts(text); }), ErrorCode::kUsage) << text;
  }
}

TEST(RankingMetricsTest, RandomRunsWithTiesScoreAsInTrecEval) {
  const auto fixture =
      nlohmann::json::parse(test::ReadFile(test::Fixture("retrieval/fixtures/metrics.json")));
  Qrels qrels;
  for (const auto& [query, judgements] : fixture["qrels"].items()) {
    for (const auto& [document, grade] : judgements.items()) qrels[query][document] = grade.get<int32_t>();
  }
  RetrievalRun run;
  for (const auto& [query, ranking] : fixture["run"].items()) {
    for (const auto& [document, score] : ranking.items()) {
      run[query].push_back({document, static_cast<float>(score.get<double>())});
    }
  }
  const RankingScores scores = Score(qrels, run);
  ASSERT_EQ(nlohmann::json(scores.measures), fixture["measures"]);
  ASSERT_EQ(scores.queries.size(), fixture["expected"].size());
  for (size_t query = 0; query < scores.queries.size(); ++query) {
    const nlohmann::json& expected = fixture["expected"][scores.queries[query]];
    for (size_t measure = 0; measure < scores.measures.size(); ++measure) {
      EXPECT_NEAR(scores.ValuesOf(measure)[query], expected[measure].get<double>(), 1e-12)
          << scores.queries[query] << " " << scores.measures[measure];
    }
  }
}

}  // namespace
}  // namespace trainwright
