// GRIT on several ranks: the same run bit for bit with --exact-world, within rounding without.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/loading/joined_shard_set.h"
#include "lib/spec/objective_names.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/print_precision.h"
#include "tests/train/rank_runs.h"

namespace trainwright {
namespace {

using test::ExpectSameOnRanks;
using test::ExpectSameWhereRanksChange;
using test::RankPoint;
using test::RankRun;
using test::RankRunSetup;
using test::TakeSteps;

constexpr int64_t kGritLeaves = 4;
constexpr int kGritSteps = 5;

/// A text of a few tokens of the tiny vocabulary.
test::PlainText GritTextOf(uint32_t number, uint32_t length, uint32_t instruction) {
  test::PlainText text;
  for (uint32_t i = 0; i < instruction; ++i) text.instruction.push_back(1 + i);
  for (uint32_t i = 0; i < length; ++i) text.pooled.push_back((number / (i + 1) + 3 * i) % test::kTinyVocab);
  return text;
}

std::vector<test::PlainRecord> GritRecords(uint32_t count) {
  std::vector<test::PlainRecord> records;
  for (uint32_t r = 0; r < count; ++r) {
    test::PlainRecord record = {.query = GritTextOf(r, 3 + r % 4, r % 2)};
    for (uint32_t k = 0; k < 1 + r % 2; ++k) {
      record.positives.push_back(GritTextOf(r + 17 * (k + 1), 4 + (r + k) % 6, r % 3));
    }
    for (uint32_t k = 0; k < r % 4; ++k) record.negatives.push_back(GritTextOf(r + 31 * (k + 1), 3 + k, 0));
    records.push_back(std::move(record));
  }
  return records;
}

/// Contrastive records and documents.
std::unique_ptr<ShardSet> RecordsAndText() {
  std::vector<NamedShardSet> sets;
  sets.push_back(
      {"records", std::make_unique<test::MemoryShardSet>(test::ChunksOf(GritRecords(40)), 2, test::kTinyVocab,
                                                         RecordKind::kContrastive)});
  sets.push_back({"text", std::make_unique<test::MemoryShardSet>(test::CountingDocuments())});
  return JoinShardSets(std::move(sets), UnlikeSets::kTaken);
}

/// Contrastive records in two sets, whose steps come from one of them as far as these go.
std::unique_ptr<ShardSet> TwoSets() {
  std::vector<NamedShardSet> sets;
  for (const uint32_t records : {40, 25}) {
    sets.push_back({std::to_string(records),
                    std::make_unique<test::MemoryShardSet>(test::ChunksOf(GritRecords(records)), 2,
                                                           test::kTinyVocab, RecordKind::kContrastive)});
  }
  return JoinShardSets(std::move(sets), UnlikeSets::kTaken);
}

TrainPlan GritPlan(OwnOptions own = {}, Precision precision = Precision::kFp32) {
  TrainPlan plan = test::TinyPlan(precision);
  plan.objective = kGritObjective;
  own.emplace("temperature", 0.1);
  own.emplace("query_max_len", 6);
  own.emplace("passage_max_len", 10);
  plan.objective_own = std::move(own);
  plan.tuning.embedding = EmbeddingTuning{.train_head = false};
  plan.batch = 2;
  plan.accum = 2 * kGritLeaves;
  plan.exact_world = kGritLeaves;
  plan.drop_last = true;
  plan.clip = 0.3;  // the norm decides each step
  return plan;
}

struct GritCase {
  std::string name;
  TrainPlan plan;
  bool defer = false;
};

void PrintTo(const GritCase& one, std::ostream* out) {
  *out << one.name;
}

TrainPlan UnifiedPlan(OwnOptions own = {}) {
  own.emplace("mode", "unified");
  TrainPlan plan = GritPlan(std::move(own));
  plan.tuning.embedding->train_head = true;
  return plan;
}

std::vector<GritCase> AllGritCases() {
  std::vector<GritCase> cases = {
      {.name = "Embedding", .plan = GritPlan()},
      {.name = "Bf16", .plan = GritPlan({}, Precision::kBf16)},
      {.name = "Fp16Deferred", .plan = GritPlan({}, Precision::kFp16), .defer = true},
      {.name = "LoraWithDropout", .plan = GritPlan()},
      {.name = "Projection", .plan = GritPlan({{"projection", 12}})},
      {.name = "SymmetricMaskedByText",
       .plan = GritPlan({{"symmetric", "on"}, {"mask_false_negatives", "text"}, {"positives", "all"}})},
      {.name = "MatryoshkaRounded",
       .plan = GritPlan({{"matryoshka", "8,32"}, {"round_vectors", "on"}}, Precision::kBf16)},
      {.name = "NegativesOfTheMicroBatch", .plan = GritPlan({{"negatives", "micro-batch"}})},
      {.name = "PassesApart", .plan = GritPlan({{"split_emb", "full"}})},
      {.name = "SeveralSets", .plan = GritPlan()},
      {.name = "Unified", .plan = UnifiedPlan()},
      {.name = "UnifiedFewRows",
       .plan = UnifiedPlan({{"gen_batch", 1}, {"companion_every", 2}, {"gen_loss", "sample"}})},
      {.name = "UnifiedInOnePassEachWithDropout",
       .plan = UnifiedPlan({{"no_emb_gas", "on"}, {"no_gen_gas", "on"}})},
      {.name = "UnifiedWithDropout", .plan = UnifiedPlan()}};
  for (GritCase& one : cases) {
    if (one.name.ends_with("WithDropout")) {
      one.plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
    }
    if (one.name == "Projection") one.plan.tuning.embedding->projection = 12;
  }
  return cases;
}

class GritWorldsTest : public testing::TestWithParam<GritCase> {
 protected:
  RankRunSetup setup() const {
    const ShardSet* set = &records_;
    if (GetParam().name == "SeveralSets") set = two_sets_.get();
    if (GetParam().name.starts_with("Unified")) set = both_.get();
    return {.set = set, .plan = GetParam().plan, .defer = GetParam().defer};
  }

  const test::MemoryShardSet records_ =
      test::MemoryShardSet(test::ChunksOf(GritRecords(40)), 2, test::kTinyVocab, RecordKind::kContrastive);
  const std::unique_ptr<ShardSet> both_ = RecordsAndText(), two_sets_ = TwoSets();
};

INSTANTIATE_TEST_SUITE_P(Runs, GritWorldsTest, testing::ValuesIn(AllGritCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GritWorldsTest, EndsInTheSameBitsOnAnyNumberOfRanks) {
  const RankPoint alone = TakeSteps(setup(), 1, kGritSteps)[0];
  EXPECT_GT(alone.state.data().cursor.epoch, 0u) << "the steps go over the end of an epoch";
  EXPECT_GT(alone.reports.back().loss_nats, 0);
  ExpectSameOnRanks(setup(), kGritSteps, alone);
}

TEST_P(GritWorldsTest, IsTheSameRunWhereTheNumberOfRanksChangesOnTheWay) {
  const RankPoint alone = TakeSteps(setup(), 1, kGritSteps)[0];
  ExpectSameWhereRanksChange(setup(), {{4, 2}, {1, 1}, {2, 2}}, alone);
}

class GritZeroTest : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Stages, GritZeroTest, testing::Values(1, 2));

TEST_P(GritZeroTest, EndsInTheBitsOfOneProcess) {
  const auto set = RecordsAndText();
  RankRunSetup setup = {.set = set.get(), .plan = UnifiedPlan()};
  const RankPoint alone = TakeSteps(setup, 1, 3)[0];
  setup.plan.zero = GetParam();
  ExpectSameOnRanks(setup, 3, alone);
}

TEST_P(GritZeroTest, WithoutExactLeavesItIsThatRunWithinRounding) {
  const auto set = RecordsAndText();
  RankRunSetup setup = {.set = set.get(), .plan = UnifiedPlan()};
  setup.plan.exact_world = 0;
  const RankPoint alone = TakeSteps(setup, 1, 1)[0];
  setup.plan.zero = GetParam();
  for (const ZeroAccumulation accumulation : {ZeroAccumulation::kReduce, ZeroAccumulation::kKeep}) {
    setup.plan.zero_accumulation = accumulation;
    for (const RankPoint& point : TakeSteps(setup, 4, 1)) {
      EXPECT_NEAR(point.reports[0].loss_nats, alone.reports[0].loss_nats, 1e-6 * alone.reports[0].loss_nats);
      EXPECT_NEAR(point.reports[0].grad_norm, alone.reports[0].grad_norm, 1e-6 * alone.reports[0].grad_norm);
    }
  }
}

TEST(GritWorlds, WithoutExactLeavesGradientsAreEqualWithinRounding) {
  const test::MemoryShardSet set(test::ChunksOf(GritRecords(40)), 2, test::kTinyVocab,
                                 RecordKind::kContrastive);
  RankRunSetup setup = {.set = &set, .plan = GritPlan()};
  setup.plan.exact_world = 0;
  const RankPoint alone = TakeSteps(setup, 1, 1)[0];
  for (const int64_t ranks : {2, 4}) {
    const RankPoint point = TakeSteps(setup, ranks, 1)[0];
    EXPECT_NEAR(point.reports[0].loss_nats, alone.reports[0].loss_nats, 1e-6 * alone.reports[0].loss_nats);
    EXPECT_NEAR(point.reports[0].grad_norm, alone.reports[0].grad_norm, 1e-6 * alone.reports[0].grad_norm);
  }
}

TEST(GritWorlds, TheScaleOfTheOriginalDividesTheGradientByTheRanks) {
  const test::MemoryShardSet set(test::ChunksOf(GritRecords(40)), 2, test::kTinyVocab,
                                 RecordKind::kContrastive);
  RankRunSetup setup = {.set = &set, .plan = GritPlan()};
  setup.plan.exact_world = 0;
  const double norm = TakeSteps(setup, 1, 1)[0].reports[0].grad_norm;
  setup.plan.objective_own["emb_grad_scale"] = "upstream";
  for (const int64_t ranks : {1, 2, 4}) {
    const double found = TakeSteps(setup, ranks, 1)[0].reports[0].grad_norm;
    EXPECT_NEAR(found * static_cast<double>(ranks), norm, 1e-5 * norm) << ranks;
  }
}

TEST(GritWorlds, ATinyModelLearnsToFindItsPassages) {
  const test::MemoryShardSet set(test::ChunksOf(GritRecords(16)), 2, test::kTinyVocab,
                                 RecordKind::kContrastive);
  const RankRunSetup setup = {.set = &set, .plan = GritPlan()};
  const RankPoint point = TakeSteps(setup, 1, 60)[0];
  EXPECT_LT(point.reports.back().loss_nats, 0.5 * point.reports.front().loss_nats);
}

}  // namespace
}  // namespace trainwright
