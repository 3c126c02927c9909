// Evaluation during training against brute force over texts that are computed one by one.
#include "lib/objective/grit_evaluation.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/loading/joined_shard_set.h"
#include "lib/objective/perplexity.h"
#include "tests/loading/text_chunks.h"
#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::GritOf;
using test::PlainRecord;
using test::PlainText;

constexpr uint32_t kRecords = 60;

PlainText RandomText(const std::string& stream, uint64_t number, uint32_t length, uint32_t instruction) {
  const Rng rng(test::TestSeed(), stream, number);
  const auto token = [&](uint64_t place) { return static_cast<uint32_t>(rng.Bits(place) % 300); };
  PlainText text;
  for (uint32_t i = 0; i < instruction; ++i) text.instruction.push_back(token(1000 + i));
  for (uint32_t i = 0; i < length; ++i) text.pooled.push_back(token(i));
  return text;
}

/// Every third record shares its positive with the one before.
std::vector<PlainRecord> Records() {
  std::vector<PlainRecord> records;
  for (uint32_t r = 0; r < kRecords; ++r) {
    PlainRecord record = {.query = RandomText("query", r, 3 + r % 4, r % 3)};
    const uint32_t positive = r % 3 == 2 ? r - 1 : r;
    record.positives.push_back(RandomText("positive", positive, 4 + positive % 5, positive % 2));
    if (r % 4 == 0) record.positives.push_back(RandomText("more", r, 5, 0));
    for (uint32_t k = 0; k < r % 3; ++k) record.negatives.push_back(RandomText("negative", 10 * r + k, 6, 1));
    records.push_back(std::move(record));
  }
  return records;
}

std::unique_ptr<ShardSet> ContrastiveSet() {
  return std::make_unique<test::MemoryShardSet>(test::ChunksOf(Records()), 4, 300, RecordKind::kContrastive);
}

std::unique_ptr<ShardSet> TextSet() {
  std::vector<Chunk> chunks;
  for (uint32_t c = 0; c < 6; ++c) {
    Chunk& chunk = chunks.emplace_back();
    chunk.tokens = RandomText("document", c, 20 + c, 0).pooled;
    chunk.segments.push_back({.tokens = 20 + c, .source_bytes = 20 + c});
  }
  return std::make_unique<test::MemoryShardSet>(std::move(chunks), 2, 300);
}

std::unique_ptr<LanguageModel> Model() {
  return test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
}

std::map<std::string, double> MeasuresOf(const Evaluation& evaluation) {
  std::map<std::string, double> measures;
  for (const EvaluationMeasure& measure : evaluation.measures) measures[measure.name] = measure.value.value();
  return measures;
}

/// The vector of a text, alone, by the mean of its pooled rows.
std::vector<double> VectorOf(LanguageModel* model, const PlainText& text) {
  PackedBatch batch;
  const std::vector<uint32_t> tokens = text.tokens();
  batch.AppendSpan(std::span<const uint32_t>(tokens), kNoId);
  BodyInput input = ToModelInput(batch);
  input.mask = AttentionMask::kBidirectional;
  const at::Tensor rows = model->body().Forward(input, Keep::kNothing);
  at::Tensor vector = test::PooledSlowly("mean", rows, static_cast<int64_t>(text.instruction.size()));
  vector = vector.div(vector.norm());
  const double* values = vector.const_data_ptr<double>();
  return {values, values + vector.numel()};
}

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The measures by their definitions, of all records.
class BruteForce {
 public:
  explicit BruteForce(LanguageModel* model) {
    for (const PlainRecord& record : Records()) {
      std::vector<size_t> relevant;
      for (const PlainText& text : record.positives) relevant.push_back(Add(model, text));
      for (const PlainText& text : record.negatives) Add(model, text);
      queries_.push_back(VectorOf(model, record.query));
      relevant_.push_back(std::move(relevant));
    }
    // The corpus grows with the records: queries are scored against all of it at the end.
    for (size_t i = 0; i < queries_.size(); ++i) Rank(queries_[i], relevant_[i]);
  }
  double mean(const std::string& name) const { return sums_.at(name) / static_cast<double>(queries_.size()); }
  size_t corpus() const { return corpus_.size(); }

 private:
  size_t Add(LanguageModel* model, const PlainText& text) {
    const auto [known, is_new] = numbers_.try_emplace(text.tokens(), corpus_.size());
    if (is_new) corpus_.push_back(VectorOf(model, text));
    return known->second;
  }
  void Rank(const std::vector<double>& query, const std::vector<size_t>& relevant) {
    std::vector<std::pair<double, size_t>> ranked;
    for (size_t i = 0; i < corpus_.size(); ++i) ranked.emplace_back(Product(query, corpus_[i]), i);
    std::sort(ranked.rbegin(), ranked.rend());
    double gain = 0, ideal = 0, precision = 0, found = 0, first = 0, at_10 = 0, at_100 = 0;
    for (size_t place = 1; place <= std::min<size_t>(100, ranked.size()); ++place) {
      const bool is_relevant =
          std::find(relevant.begin(), relevant.end(), ranked[place - 1].second) != relevant.end();
      if (!is_relevant) continue;
      ++found;
      precision += found / static_cast<double>(place);
      ++at_100;
      if (place > 10) continue;
      ++at_10;
      gain += 1 / std::log2(static_cast<double>(place) + 1);
      if (first == 0) first = 1 / static_cast<double>(place);
    }
    for (size_t place = 1; place <= std::min<size_t>(10, relevant.size()); ++place) {
      ideal += 1 / std::log2(static_cast<double>(place) + 1);
    }
    const auto all = static_cast<double>(relevant.size());
    sums_["ndcg_at_10"] += gain / ideal;
    sums_["recall_at_10"] += at_10 / all;
    sums_["recall_at_100"] += at_100 / all;
    sums_["mrr_at_10"] += first;
    sums_["map"] += precision / all;
  }

  std::map<std::vector<uint32_t>, size_t> numbers_;
  std::vector<std::vector<double>> corpus_, queries_;
  std::vector<std::vector<size_t>> relevant_;
  std::map<std::string, double> sums_;
};

TEST(GritEvaluation, MeasuresAreThoseOfBruteForce) {
  const auto set = ContrastiveSet();
  const auto model = Model();
  const BruteForce expected(model.get());
  const Evaluation found = GritOf({{"mode", "embedding"}})->Evaluate(model.get(), *set, {});
  std::map<std::string, double> measures = MeasuresOf(found);
  for (const char* name : {"ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_10", "map"}) {
    EXPECT_NEAR(measures[name], expected.mean(name), 1e-6) << name;
  }
  EXPECT_EQ(measures["queries"], kRecords);
  EXPECT_EQ(measures["corpus"], static_cast<double>(expected.corpus()));
  EXPECT_EQ(found.documents, kRecords);
  EXPECT_EQ(found.loss_nats, measures["loss_emb_nats"]);
}

TEST(GritEvaluation, TheLossIsThatOfTheFirstTextsOfEachRecord) {
  const auto set = ContrastiveSet();
  const auto model = Model();
  ContrastiveGroups groups;
  groups.first_passage.push_back(0);
  std::vector<at::Tensor> queries, passages;
  const auto vector_of = [&](const PlainText& text) {
    return at::tensor(VectorOf(model.get(), text), at::TensorOptions().dtype(at::kDouble));
  };
  for (const PlainRecord& record : Records()) {
    queries.push_back(vector_of(record.query));
    passages.push_back(vector_of(record.positives[0]));
    for (size_t k = 0; k < std::min<size_t>(1, record.negatives.size()); ++k) {
      passages.push_back(vector_of(record.negatives[k]));
    }
    groups.positives.push_back(1);
    groups.first_passage.push_back(static_cast<int64_t>(passages.size()));
  }
  const double expected =
      test::DenseMean({.temperature = 0.1}, groups, at::stack(queries), at::stack(passages));
  const auto objective = GritOf({{"mode", "embedding"}, {"temperature", 0.1}});
  EXPECT_NEAR(objective->Evaluate(model.get(), *set, {}).loss_nats, expected, 1e-4 * expected);
}

// One query alone would find its passage among no others, without any loss.
TEST(GritEvaluation, TheLastQueriesAreToldFromAsManyAsTheOthers) {
  constexpr size_t kOfBatch = 256;
  constexpr double kTemperature = 0.1;
  const auto model = Model();
  std::vector<PlainRecord> records;
  std::vector<std::vector<double>> queries, passages;
  for (uint32_t r = 0; r <= kOfBatch; ++r) {
    records.push_back({.query = RandomText("query", r, 4, 0),
                       .positives = {RandomText("positive", r, 5, 0)},
                       .negatives = {}});
    queries.push_back(VectorOf(model.get(), records.back().query));
    passages.push_back(VectorOf(model.get(), records.back().positives[0]));
  }
  const auto loss_of = [&](size_t query, size_t first) {
    double sum = 0;
    for (size_t i = first; i < first + kOfBatch; ++i) {
      sum += std::exp(Product(queries[query], passages[i]) / kTemperature);
    }
    return std::log(sum) - Product(queries[query], passages[query]) / kTemperature;
  };
  double expected = loss_of(kOfBatch, 1);
  for (size_t query = 0; query < kOfBatch; ++query) expected += loss_of(query, 0);
  expected /= static_cast<double>(kOfBatch + 1);
  const test::MemoryShardSet set(test::ChunksOf(records), 4, 300, RecordKind::kContrastive);
  const auto objective = GritOf({{"mode", "embedding"}, {"temperature", kTemperature}});
  EXPECT_NEAR(objective->Evaluate(model.get(), set, {}).loss_nats, expected, 1e-4 * expected);
}

TEST(GritEvaluation, FewerQueriesSearchTheSameCorpus) {
  const auto set = ContrastiveSet();
  const auto model = Model();
  const auto all = GritOf({{"mode", "embedding"}}),
             some = GritOf({{"mode", "embedding"}, {"eval_queries", 7}});
  std::map<std::string, double> whole = MeasuresOf(all->Evaluate(model.get(), *set, {})),
                                part = MeasuresOf(some->Evaluate(model.get(), *set, {}));
  EXPECT_EQ(part["queries"], 7);
  EXPECT_EQ(part["corpus"], whole["corpus"]);
}

TEST(GritEvaluation, RecordsOfOneQueryAreMeasuredAsOneWithThePositivesOfAll) {
  std::vector<PlainRecord> apart;
  for (const PlainRecord& record : Records()) {
    PlainRecord& first = apart.emplace_back(record);
    first.positives.resize(1);
    for (size_t i = 1; i < record.positives.size(); ++i) {
      apart.push_back({.query = record.query, .positives = {record.positives[i]}, .negatives = {}});
    }
  }
  const test::MemoryShardSet set(test::ChunksOf(apart), 4, 300, RecordKind::kContrastive);
  const auto model = Model();
  const auto objective = GritOf({{"mode", "embedding"}});
  std::map<std::string, double> expected =
      MeasuresOf(objective->Evaluate(model.get(), *ContrastiveSet(), {}));
  std::map<std::string, double> found = MeasuresOf(objective->Evaluate(model.get(), set, {}));
  for (const char* name :
       {"ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_10", "map", "queries", "corpus"}) {
    EXPECT_NEAR(found[name], expected[name], 1e-6) << name;
  }
}

TEST(GritEvaluation, PositivesOfRecordsWhoseQueryIsDrawnForAnotherAreRight) {
  std::vector<PlainRecord> records;
  for (uint32_t r = 0; r < 6; ++r) {
    records.push_back({.query = RandomText("query", 0, 4, 0),
                       .positives = {RandomText("positive", r, 5, 0)},
                       .negatives = {}});
  }
  const test::MemoryShardSet set(test::ChunksOf(records), 4, 300, RecordKind::kContrastive);
  const auto model = Model();
  const auto objective = GritOf({{"mode", "embedding"}, {"eval_queries", 1}});
  EXPECT_EQ(MeasuresOf(objective->Evaluate(model.get(), set, {}))["map"], 1);
}

TEST(GritEvaluation, UnifiedTrainingTellsBothAndAddsTheLosses) {
  std::vector<NamedShardSet> sets;
  sets.push_back({"records", ContrastiveSet()});
  sets.push_back({"text", TextSet()});
  const auto set = JoinShardSets(std::move(sets), UnlikeSets::kTaken);
  const auto text = TextSet();
  const auto model = Model();
  const Evaluation found =
      GritOf({{"mode", "unified"}, {"generative_max_len", 64}})->Evaluate(model.get(), *set, {});
  std::map<std::string, double> measures = MeasuresOf(found);
  PerplexityMeter meter(model.get(), 64, 512);
  meter.AddSet(*text, 0, {});
  EXPECT_NEAR(measures["perplexity"], meter.Finish().perplexity(), 1e-6 * measures["perplexity"]);
  EXPECT_EQ(found.loss_nats, measures["loss_emb_nats"] + measures["loss_gen_nats"]);
  EXPECT_TRUE(measures.contains("ndcg_at_10"));
}

/// Of documents of fewer than 64 tokens.
Evaluation GenerativeEvaluation(LanguageModel* model, const char* loss, double factor) {
  const auto objective = GritOf(
      {{"mode", "generative"}, {"generative_max_len", 64}, {"gen_loss", loss}, {"gen_loss_factor", factor}});
  return objective->Evaluate(model, *TextSet(), {});
}

TEST(GritEvaluation, TheGenerativeLossHasTheFactorThatItIsTrainedWith) {
  const auto model = Model();
  const Evaluation plain = GenerativeEvaluation(model.get(), "mixed", 1),
                   weighted = GenerativeEvaluation(model.get(), "mixed", 0.25);
  EXPECT_EQ(weighted.loss_nats, 0.25 * plain.loss_nats);
  EXPECT_EQ(MeasuresOf(weighted).at("loss_gen_nats"), weighted.loss_nats);
  EXPECT_EQ(MeasuresOf(weighted).at("perplexity"), MeasuresOf(plain).at("perplexity"));
}

TEST(GritEvaluation, WhereTrainingSumsOverTheTokensOfTextsSoDoesTheLoss) {
  const auto model = Model();
  PerplexityMeter meter(model.get(), 64, 512);
  meter.AddSet(*TextSet(), 0, {});
  const PerplexitySums sums = meter.Finish();
  const double expected = sums.loss_nats / static_cast<double>(sums.documents);
  EXPECT_NEAR(GenerativeEvaluation(model.get(), "token", 1).loss_nats, expected, 1e-9 * expected);
}

/// Conversations of two questions and answers.
/// \param first_answer flags of the first answer's segment
std::unique_ptr<ShardSet> TalkSet(uint8_t first_answer) {
  std::vector<Chunk> chunks;
  for (uint32_t c = 0; c < 3; ++c) {
    Chunk& chunk = chunks.emplace_back();
    chunk.tokens = RandomText("talk", c, 20 + c, 0).pooled;
    chunk.segments.push_back({.tokens = 5, .flags = kSegmentNoLoss, .source_bytes = 5});
    for (const uint8_t own : {first_answer, kSegmentNoLoss, uint8_t{0}}) {
      const auto flags = static_cast<uint8_t>(own | kSegmentContinuesPrevious);
      const uint32_t tokens = 5 + (chunk.segments.size() == 3 ? c : 0);
      chunk.segments.push_back({.tokens = tokens, .flags = flags, .source_bytes = tokens});
    }
  }
  return std::make_unique<test::MemoryShardSet>(std::move(chunks), 2, 300, RecordKind::kSft);
}

TEST(GritEvaluation, WherePrefixlmPredictsTheLastAnswerItAloneIsMeasured) {
  const auto model = Model();
  const auto loss_of = [&](const char* prefixlm, uint8_t first_answer) {
    const auto objective = GritOf({{"mode", "generative"}, {"prefixlm", prefixlm}});
    return objective->Evaluate(model.get(), *TalkSet(first_answer), {}).loss_nats;
  };
  EXPECT_EQ(loss_of("on", 0), loss_of("off", kSegmentNoLoss));
  EXPECT_NE(loss_of("on", 0), loss_of("off", 0));
}

TEST(GritEvaluation, HasTheSameBitsOnSeveralRanks) {
  const auto set = ContrastiveSet();
  const auto objective = GritOf({{"mode", "embedding"}});
  const auto evaluate = [&](World* world) {
    const auto model = Model();
    const Evaluation found = objective->Evaluate(model.get(), *set, {.batch_tokens = 60, .world = world});
    return MeasuresOf(found);
  };
  const std::map<std::string, double> alone = test::OnOneRank(evaluate);
  for (const auto& measures : test::OnRanks(3, evaluate)) EXPECT_EQ(measures, alone);
}

TEST(GritEvaluation, DataWithoutWhatTheModeTrainsIsRefused) {
  const auto records = ContrastiveSet(), text = TextSet();
  const auto model = Model();
  const auto refused = [&](const char* mode, const ShardSet& set) {
    const auto objective = GritOf({{"mode", mode}});
    EXPECT_EQ(test::CodeOf([&] { objective->Evaluate(model.get(), set, {}); }), ErrorCode::kBadInput);
    return test::MessageOf([&] { objective->Evaluate(model.get(), set, {}); });
  };
  EXPECT_THAT(refused("embedding", *text), testing::HasSubstr("contrastive"));
  EXPECT_THAT(refused("generative", *records), testing::HasSubstr("lm or sft"));
}

TEST(GritEvaluation, RecordsWhoseInstructionFillsALimitAreLeftOut) {
  const auto set = ContrastiveSet();
  const auto model = Model();
  const auto objective = GritOf({{"mode", "embedding"}, {"passage_max_len", 1}});
  EXPECT_FALSE(test::CodeOf([&] { objective->Evaluate(model.get(), *set, {}); }).has_value())
      << "passages without an instruction are cut to a token";
  EXPECT_LT(MeasuresOf(objective->Evaluate(model.get(), *set, {}))["queries"], kRecords);
}

}  // namespace
}  // namespace trainwright
