#include "lib/eval/evaluate_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::StartsWith;

/// The message of what is refused; empty: it is taken.
std::string ProblemOf(const EvaluateSettings& settings) {
  return test::MessageOf([&] { CheckEvaluateSettings(settings); });
}

EvaluateSettings SettingsOf(const std::string& metric) {
  EvaluateSettings settings;
  settings.metric = metric;
  return settings;
}

EvaluateSettings RunToScore() {
  EvaluateSettings settings = SettingsOf("retrieval");
  settings.retrieval.qrels = "qrels";
  settings.retrieval.run = "run";
  return settings;
}

EvaluateSettings VectorsToSearch() {
  EvaluateSettings settings = SettingsOf("retrieval");
  settings.retrieval.qrels = "qrels";
  settings.retrieval.query_vectors = "queries.npy";
  settings.retrieval.corpus_vectors = "corpus.npy";
  return settings;
}

TEST(EvaluateChecksTest, PerplexityNeedsAModelAndData) {
  EvaluateSettings settings = SettingsOf("perplexity");
  EXPECT_THAT(ProblemOf(settings), StartsWith("--checkpoint: is required by --metric perplexity"));
  settings.checkpoint = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--data: is required by --metric perplexity"));
  settings.data = "shards";
  EXPECT_EQ(ProblemOf(settings), "");
  settings.retrieval.run = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--run: has no meaning for --metric perplexity"));
}

TEST(EvaluateChecksTest, AnswersNeedNoModel) {
  EvaluateSettings settings = SettingsOf("answers");
  settings.samples = "samples.jsonl";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--gold: is required by --metric answers"));
  settings.gold = "gold.jsonl";
  EXPECT_EQ(ProblemOf(settings), "");
  settings.checkpoint = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--checkpoint: has no meaning for --metric answers"));
}

TEST(EvaluateChecksTest, PairsComeWithAModelOrWithVectors) {
  EvaluateSettings settings = SettingsOf("sts");
  settings.data = "pairs.jsonl";
  settings.retrieval.query_vectors = "a.npy";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--corpus-vectors: is required by --metric sts"));
  settings.retrieval.corpus_vectors = "b.npy";
  EXPECT_EQ(ProblemOf(settings), "");
  settings.checkpoint = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--query-vectors: does not go with the other inputs"));
}

TEST(EvaluateChecksTest, RetrievalIsOfOneOfModelVectorsAndRun) {
  EXPECT_EQ(ProblemOf(RunToScore()), "");
  EXPECT_EQ(ProblemOf(VectorsToSearch()), "");
  EvaluateSettings settings = VectorsToSearch();
  settings.retrieval.run = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--query-vectors: does not go with the other inputs"));
  settings = VectorsToSearch();
  settings.checkpoint = "run";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--query-vectors: does not go with the other inputs"));
  settings = SettingsOf("retrieval");
  settings.checkpoint = "run";
  settings.retrieval.qrels = "qrels";
  settings.retrieval.corpus = "corpus.jsonl";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--queries: is required by --metric retrieval"));
  settings.retrieval.queries = "queries.jsonl";
  EXPECT_EQ(ProblemOf(settings), "");
}

TEST(EvaluateChecksTest, TheBaselineReadsTexts) {
  EvaluateSettings settings = RunToScore();
  settings.retrieval.baseline = "bm25";
  settings.retrieval.corpus = "corpus.jsonl";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--queries: is required by --metric retrieval"));
  settings.retrieval.queries = "queries.jsonl";
  EXPECT_EQ(ProblemOf(settings), "");
}

TEST(EvaluateChecksTest, ARunIsNotWrittenWhereTheResultGoes) {
  EvaluateSettings settings = RunToScore();
  settings.retrieval.run_out = "-";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--run-out: "));
}

TEST(EvaluateChecksTest, LogitsAreNotWrittenWhereTheResultGoes) {
  EvaluateSettings settings = SettingsOf("perplexity");
  settings.checkpoint = "model";
  settings.data = "text.txt";
  settings.logits = "-";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--logits: "));
}

TEST(EvaluateChecksTest, ASearchRanksAsManyDocumentsAsItIsMeasuredAt) {
  EvaluateSettings settings = VectorsToSearch();
  settings.metric_at = "1,50";
  settings.retrieval.top_k = 49;
  EXPECT_THAT(ProblemOf(settings), StartsWith("--top-k: 49 is below the greatest cutoff"));
  settings.retrieval.top_k = 50;
  EXPECT_EQ(ProblemOf(settings), "");
  settings = RunToScore();  // which ranks what it ranks
  settings.retrieval.top_k = 1;
  EXPECT_EQ(ProblemOf(settings), "");
}

TEST(EvaluateChecksTest, ALeastNdcgIsAboutTenDocuments) {
  EvaluateSettings settings = RunToScore();
  settings.min_ndcg = 0.5;
  settings.metric_at = "5,20";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--min-ndcg: "));
  settings.metric_at = "5,10";
  EXPECT_EQ(ProblemOf(settings), "");
  settings.metric_at = "10,5";
  EXPECT_THAT(ProblemOf(settings), StartsWith("--metric-at: "));
}

/// The message of what is refused once inputs for other runs are left out; empty: it is taken.
/// \param origins of options, by their keys
std::string ProblemOf(EvaluateSettings settings,
                      const std::vector<std::pair<std::string, OptionOrigin>>& origins) {
  std::vector<OptionValue> options;
  for (const auto& [key, origin] : origins) options.push_back({.key = key, .origin = origin});
  LeaveOutOtherInputs(options, &settings);
  return ProblemOf(settings);
}

constexpr OptionOrigin kTyped = OptionOrigin::kCommandLine, kOfVariable = OptionOrigin::kEnvironment,
                       kOfFile = OptionOrigin::kConfigFile;

TEST(EvaluateChecksTest, InputsForOtherMetricsCountOnTheCommandLineAlone) {
  EvaluateSettings settings = SettingsOf("answers");
  settings.samples = "samples.jsonl";
  settings.gold = "gold.jsonl";
  settings.checkpoint = "run";
  settings.retrieval.corpus = "corpus.jsonl";
  EXPECT_EQ(ProblemOf(settings, {{"checkpoint", kOfVariable}, {"corpus", kOfFile}}), "");
  EXPECT_THAT(ProblemOf(settings, {{"checkpoint", kTyped}, {"corpus", kOfFile}}),
              StartsWith("--checkpoint: has no meaning for --metric answers"));
}

TEST(EvaluateChecksTest, ASourceOfRankingsGivesWayToOneOfHigherPrecedence) {
  EvaluateSettings settings = RunToScore();
  settings.checkpoint = "model";
  EXPECT_EQ(ProblemOf(settings, {{"run", kTyped}, {"checkpoint", kOfVariable}}), "");
  EXPECT_EQ(ProblemOf(settings, {{"run", kOfVariable}, {"checkpoint", kOfFile}}), "");
  EXPECT_THAT(ProblemOf(settings, {{"run", kOfFile}, {"checkpoint", kOfFile}}),
              StartsWith("--run: does not go with the other inputs"));
}

TEST(EvaluateChecksTest, ASourceOfRankingsBesideAModelIsRefusedAsThatWhateverTheModelLacks) {
  EvaluateSettings settings = RunToScore();
  settings.checkpoint = "model";
  const std::string beside_model = "--run: does not go with the other inputs that are given: --checkpoint";
  EXPECT_THAT(ProblemOf(settings), StartsWith(beside_model));
  settings.retrieval.corpus = "corpus.jsonl";
  settings.retrieval.queries = "queries.jsonl";
  EXPECT_THAT(ProblemOf(settings), StartsWith(beside_model));
}

TEST(EvaluateChecksTest, ASourceThatAMetricDoesNotHaveTakesThePlaceOfNoOther) {
  EvaluateSettings settings = SettingsOf("perplexity");
  settings.data = "shards";
  settings.checkpoint = "model";
  settings.retrieval.run = "ranking.trec";
  EXPECT_THAT(ProblemOf(settings, {{"data", kTyped}, {"checkpoint", kOfVariable}, {"run", kTyped}}),
              StartsWith("--run: has no meaning for --metric perplexity"));
}

TEST(EvaluateChecksTest, VectorsOfOneSourceMayComeFromTwoPlaces) {
  EvaluateSettings settings = VectorsToSearch();
  settings.checkpoint = "model";
  EXPECT_EQ(ProblemOf(settings,
                      {{"query-vectors", kTyped}, {"corpus-vectors", kOfFile}, {"checkpoint", kOfVariable}}),
            "");
}

TEST(EvaluateSettingsTest, TheVectorsOfPairsAreThoseOfQueriesAndCorpus) {
  EvaluateSettings settings = SettingsOf("sts");
  settings.data = "pairs.jsonl";
  settings.mixed_precision = "bf16";
  settings.retrieval.query_vectors = "a.npy";
  settings.retrieval.corpus_vectors = "b.npy";
  settings.retrieval.query_instruction = "compare";
  const StsSettings sts = StsSettingsOf(settings);
  EXPECT_EQ(sts.pairs, "pairs.jsonl");
  EXPECT_EQ(sts.a_vectors, "a.npy");
  EXPECT_EQ(sts.b_vectors, "b.npy");
  EXPECT_EQ(sts.instruction, "compare");
  EXPECT_EQ(sts.embedding.mixed_precision, "bf16");
}

TEST(EvaluateSettingsTest, RetrievalTakesWhatAllMetricsShare) {
  EvaluateSettings settings = SettingsOf("retrieval");
  settings.checkpoint = "run";
  settings.adapter = "adapter";
  settings.metric_at = "3,7";
  settings.gain = "exp";
  settings.average = "all";
  const RetrievalSettings retrieval = RetrievalSettingsOf(settings);
  EXPECT_EQ(retrieval.embedding.checkpoint, "run");
  EXPECT_EQ(retrieval.embedding.adapter, "adapter");
  EXPECT_EQ(retrieval.metrics.cuts, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(retrieval.metrics.gain, Gain::kExponential);
  EXPECT_EQ(retrieval.metrics.averaged, AveragedQueries::kAll);
}

}  // namespace
}  // namespace trainwright
