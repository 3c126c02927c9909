// Steps in two passes against the same step in one, and against the loss by its definition.
#include "lib/objective/grit_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/objective/counting_body.h"
#include "tests/objective/grit_texts.h"
#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

using test::GritOf;
using test::GritStepOf;
using test::GritStepShape;
using test::kCpu;
using test::StepMade;
using test::TakePasses;

constexpr int64_t kQueries = 24;

/// A model with weights apart from where they begin, so that adapters have gradients, too. What all weights
/// had in common would make all vectors alike, whose gradients nearly cancel.
std::unique_ptr<LanguageModel> ModelOf(const ModelConfig& config, const FineTuning& tuning = {}) {
  auto body = test::MakeBody(config, test::kFp32Numerics, kCpu, 5, tuning);
  for (const Parameter& parameter : body->parameters().all()) {
    if (!parameter.trainable || !tuning.lora) continue;
    const Rng rng(5, "apart/" + parameter.name);
    at::Tensor apart = at::empty(parameter.shape, at::kFloat);
    rng.FillNormal(0, parameter.size, 0.05, apart.mutable_data_ptr<float>());
    at::Tensor(parameter.value).add_(apart);
  }
  body->parameters().RefreshCompute();
  return std::make_unique<LanguageModel>(std::move(body));
}

OwnOptions Embedding(OwnOptions more = {}) {
  more.emplace("mode", "embedding");
  more.emplace("temperature", 0.1);
  return more;
}

GritStepShape ShapeOf(const ModelConfig& config, int64_t queries = kQueries) {
  return {.vocabulary = config.vocab_size, .queries = queries};
}

FineTuning Lora(double dropout, WeightFormat format = WeightFormat::kPlain) {
  return {.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = dropout}, .frozen_format = format};
}

struct TwoPassesCase {
  std::string name;
  ModelConfig config;
  FineTuning tuning;
  std::string attention = "bbcc";
};

void PrintTo(const TwoPassesCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<TwoPassesCase> AllCases() {
  const std::vector<std::pair<std::string, ModelConfig>> families = {{"llama", test::SmallLlama()},
                                                                     {"mistral", test::SmallMistral()},
                                                                     {"qwen2", test::SmallQwen2()},
                                                                     {"gpt2", test::SmallGpt2()},
                                                                     {"neox", test::SmallNeox()}};
  std::vector<TwoPassesCase> cases;
  for (const auto& [name, config] : families) {
    cases.push_back({name + "_all", config, {}});
    cases.push_back({name + "_lora_dropout", config, Lora(0.1)});
  }
  cases.push_back({"llama_nf4", test::SmallLlama(), Lora(0.1, WeightFormat::kNf4)});
  const ModelConfig ten = test::TenOf(test::TenKinds()[3].fields);
  cases.push_back({"ten_all", ten, {}, "cccc"});
  cases.push_back({"ten_lora_dropout", ten, Lora(0.1), "cccc"});
  return cases;
}

class TwoPassesTest : public testing::TestWithParam<TwoPassesCase> {};

INSTANTIATE_TEST_SUITE_P(Models, TwoPassesTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TwoPassesTest, GradientsAreThoseOfOneMicroBatchWhateverTheChunk) {
  const auto objective = GritOf(Embedding({{"attn", GetParam().attention}}));
  const GritStepShape shape = ShapeOf(GetParam().config);
  const auto model = ModelOf(GetParam().config, GetParam().tuning);
  const StepMade whole = TakePasses(*objective, model.get(), GritStepOf(*objective, shape, kQueries));
  EXPECT_GT(whole.gradients.abs().max().item<double>(), 0);
  for (const int64_t chunk : {1, 3, 8}) {
    const StepMade made = TakePasses(*objective, model.get(), GritStepOf(*objective, shape, chunk));
    EXPECT_LT(test::RelativeDifference(made.gradients, whole.gradients), 1e-5) << chunk;
    EXPECT_NEAR(made.sums[0], whole.sums[0], 1e-5 * whole.sums[0]) << chunk;
    EXPECT_EQ(made.sums[1], whole.sums[1]) << chunk;
  }
}

TEST_P(TwoPassesTest, WhatIsComputedAgainChangesNoBit) {
  const auto objective = GritOf(Embedding({{"attn", GetParam().attention}}));
  const StepBatches step = GritStepOf(*objective, ShapeOf(GetParam().config), 8);
  const auto made_with = [&](ActivationCheckpointing kind) {
    const auto model = ModelOf(GetParam().config, GetParam().tuning);
    model->set_activation_checkpointing(kind);
    return TakePasses(*objective, model.get(), step);
  };
  const StepMade all_kept = made_with(ActivationCheckpointing::kNo);
  for (const auto kind : {ActivationCheckpointing::kSelective, ActivationCheckpointing::kFull}) {
    EXPECT_TRUE(at::equal(made_with(kind).gradients, all_kept.gradients));
  }
}

TEST(GritStep, DropoutChangesTheGradients) {
  const auto objective = GritOf(Embedding());
  const StepBatches step = GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8);
  const auto with = ModelOf(test::SmallLlama(), Lora(0.1)), without = ModelOf(test::SmallLlama(), Lora(0));
  EXPECT_GT(test::RelativeDifference(TakePasses(*objective, with.get(), step).gradients,
                                     TakePasses(*objective, without.get(), step).gradients),
            1e-3);
}

/// Forward and backward passes of a step in so many micro-batches.
/// \param every_row how-manieth records have a row; 0: none
std::pair<int, int> PassesOf(const OwnOptions& own, int64_t chunk, int64_t every_row = 0) {
  const auto objective = GritOf(own);
  auto body =
      std::make_shared<test::CountingBody>(test::MakeBody(test::SmallLlama(), test::kFp32Numerics, kCpu, 5));
  LanguageModel model(body);
  GritStepShape shape = ShapeOf(test::SmallLlama());
  shape.every_row = every_row;
  TakePasses(*objective, &model, GritStepOf(*objective, shape, chunk));
  return {body->forward_passes, body->backward_passes};
}

TEST(GritStep, ComputesEachMicroBatchButOneTwice) {
  EXPECT_EQ(PassesOf(Embedding(), kQueries), std::pair(1, 1));
  EXPECT_EQ(PassesOf(Embedding(), 8), std::pair(5, 3));
  EXPECT_EQ(PassesOf(Embedding(), 1), std::pair(47, 24));
}

TEST(GritStep, NegativesOfTheMicroBatchTakeOneForwardPass) {
  EXPECT_EQ(PassesOf(Embedding({{"negatives", "micro-batch"}}), 8), std::pair(3, 3));
}

TEST(GritStep, SidesWithoutGradientsAreNotComputedTwice) {
  // Apart: 6 passes for vectors, of which the last one is kept; then those of queries alone.
  EXPECT_EQ(PassesOf(Embedding({{"split_emb", "full"}}), 8), std::pair(11, 6));
  EXPECT_EQ(PassesOf(Embedding({{"split_emb", "full"}, {"emb_sides", "query"}}), 8), std::pair(8, 3));
}

OwnOptions Unified(OwnOptions more = {}) {
  more.emplace("mode", "unified");
  return Embedding(std::move(more));
}

TEST(GritStep, JoinedTextsAndRowsTakeOnePass) {
  EXPECT_EQ(PassesOf(Embedding({{"no_emb_gas", "on"}}), 8), std::pair(1, 1));
  EXPECT_EQ(PassesOf(Unified({{"no_emb_gas", "on"}, {"no_gen_gas", "on"}}), 8, /*every_row=*/2),
            std::pair(2, 2));
  EXPECT_EQ(PassesOf(Unified({{"no_gen_gas", "on"}}), 8, /*every_row=*/2), std::pair(5 + 1, 3 + 1));
  EXPECT_EQ(PassesOf(Unified(), 8, /*every_row=*/2), std::pair(5 + 3, 3 + 3));
}

TEST(GritStep, JoinedTextsAndRowsMakeTheSameGradients) {
  GritStepShape shape = ShapeOf(test::SmallLlama());
  shape.every_row = 2;
  const auto model = ModelOf(test::SmallLlama(), Lora(0.1));
  for (const char* loss : {"mixed", "token", "sample"}) {
    const auto made_with = [&](OwnOptions own) {
      own.emplace("gen_loss", loss);
      const auto objective = GritOf(Unified(std::move(own)));
      return TakePasses(*objective, model.get(), GritStepOf(*objective, shape, 8));
    };
    const StepMade apart = made_with({});
    for (const OwnOptions& own : {OwnOptions{{"no_emb_gas", "on"}}, OwnOptions{{"no_gen_gas", "on"}},
                                  OwnOptions{{"no_emb_gas", "on"}, {"no_gen_gas", "on"}}}) {
      const StepMade joined = made_with(own);
      EXPECT_LT(test::RelativeDifference(joined.gradients, apart.gradients), 1e-5) << loss;
      for (const size_t term : {size_t{0}, size_t{2}}) {
        EXPECT_NEAR(joined.sums[term], apart.sums[term], 1e-5 * apart.sums[term]) << loss;
      }
    }
  }
}

TEST(GritStep, WhereMicroBatchesHaveRowsAloneOrNothingTheGradientsAreTheSame) {
  const auto objective = GritOf(Unified());
  const GritStepShape texts = ShapeOf(test::SmallLlama());
  GritStepShape both = texts, rows = texts;
  both.every_row = 1;
  rows.records = false;
  const auto model = ModelOf(test::SmallLlama(), Lora(0.1));
  const StepBatches step = GritStepOf(*objective, both, 8);
  StepBatches sorted = GritStepOf(*objective, texts, 8);
  sorted.denominators = step.denominators;
  const std::vector<PackedBatch> first = {test::GritBatchOf(rows, 0, kQueries), PackedBatch()};
  const std::vector<DropoutPosition::Sample> place = {{.index = 0}};
  sorted.micro_batches.insert(sorted.micro_batches.begin(), first.begin(), first.end());
  sorted.places.insert(sorted.places.begin(), first.size(), place);
  sorted.micro_batches.emplace_back();
  sorted.places.push_back(place);
  const StepMade expected = TakePasses(*objective, model.get(), step),
                 made = TakePasses(*objective, model.get(), sorted);
  EXPECT_LT(test::RelativeDifference(made.gradients, expected.gradients), 1e-5);
  for (const size_t term : {size_t{0}, size_t{2}}) {
    EXPECT_NEAR(made.sums[term], expected.sums[term], 1e-5 * expected.sums[term]);
  }
}

TEST(GritStep, PassesApartMakeTheSameGradients) {
  for (const double dropout : {0.0, 0.1}) {
    const auto model = ModelOf(test::SmallLlama(), Lora(dropout));
    const auto made_with = [&](const char* split) {
      const auto objective = GritOf(Embedding({{"split_emb", split}}));
      return TakePasses(*objective, model.get(), GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8));
    };
    const StepMade together = made_with("no");
    for (const char* split : {"passages", "full"}) {
      EXPECT_LT(test::RelativeDifference(made_with(split).gradients, together.gradients), 1e-5)
          << split << ", dropout " << dropout;
    }
  }
}

TEST(GritStep, GradientsOfBothSidesAddUpToTheWhole) {
  const auto model = ModelOf(test::SmallLlama());
  const auto made_with = [&](const char* sides) {
    const auto objective = GritOf(Embedding({{"emb_sides", sides}}));
    return TakePasses(*objective, model.get(), GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8))
        .gradients;
  };
  const at::Tensor queries = made_with("query"), passages = made_with("passage");
  EXPECT_GT(queries.norm().item<double>(), 0);
  EXPECT_GT(passages.norm().item<double>(), 0);
  EXPECT_LT(test::RelativeDifference(queries.add(passages), made_with("both")), 1e-5);
}

TEST(GritStep, ALossScaleThatIsAPowerOfTwoScalesEveryBit) {
  const auto objective = GritOf(Embedding());
  const auto model = ModelOf(test::SmallLlama());
  const StepBatches step = GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8);
  const StepMade plain = TakePasses(*objective, model.get(), step);
  const StepMade scaled = TakePasses(*objective, model.get(), step, Solo(), 4096);
  const StepMade on_device =
      TakePasses(*objective, model.get(), step, Solo(), 1, at::full({1}, 4096.0, at::kDouble));
  EXPECT_TRUE(at::equal(scaled.gradients, plain.gradients.mul(4096)));
  EXPECT_TRUE(at::equal(on_device.gradients, scaled.gradients));
  EXPECT_EQ(scaled.sums, plain.sums);
}

TEST(GritStep, UnderFp16TheScaleReachesGradientsBeforeTheyAreRounded) {
  const auto objective = GritOf(Embedding());
  const Numerics fp16{Precision::kFp16, at::kFloat};
  const auto exact = test::LivelyModel(test::SmallLlama(), test::kFp32Numerics),
             half = test::LivelyModel(test::SmallLlama(), fp16);
  const StepBatches step = GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8);
  const at::Tensor expected = TakePasses(*objective, exact.get(), step).gradients;
  const auto error_with = [&](double scale) {
    return test::RelativeDifference(
        TakePasses(*objective, half.get(), step, Solo(), scale).gradients.div(scale), expected);
  };
  EXPECT_LT(error_with(1024), 0.1);
  EXPECT_GT(error_with(0x1p-24), 0.5) << "so small that half precision holds none of them";
}

/// The most that this thread's tensors take beyond what was there when it began to watch.
class PeakAllocation final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    bytes_ += alloc_size;
    peak_ = std::max(peak_, bytes_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return peak_; }

 private:
  int64_t bytes_ = 0, peak_ = 0;
};

TEST(GritStep, HoldsVectorsAndATileBesideTheMemoryOfAMicroBatch) {
  constexpr int64_t kMany = 1024, kTile = int64_t{1} << 20;
  const auto objective = GritOf(Embedding({{"tile_mb", 1}}));
  const auto model = ModelOf(test::SmallLlama());
  const StepBatches step = GritStepOf(*objective, ShapeOf(test::SmallLlama(), kMany), 8);
  TakePasses(*objective, model.get(), step);  // the model's own memory is there from now on
  auto watch = std::make_shared<PeakAllocation>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
    TakePasses(*objective, model.get(), step);
  }
  const int64_t held = objective->HeldBytes(
      {.samples_of_rank = kMany, .samples_of_step = kMany, .micro_batch = 8}, test::SmallLlama());
  // The scores of all would be 9 MiB. Products copy panels of their operands.
  EXPECT_LT(watch->bytes(), held + 2 * kTile);
  EXPECT_LT(held, 4 * kTile);
}

// Against the loss by its definition.

struct FormulaCase {
  std::string pooling, attention;
  int64_t projection = 0;
};

void PrintTo(const FormulaCase& one, std::ostream* out) {
  *out << one.pooling << " " << one.attention << " " << one.projection;
}

class GritFormulaTest : public testing::TestWithParam<FormulaCase> {
 protected:
  OwnOptions own() const {
    return Embedding({{"pooling", GetParam().pooling},
                      {"attn", GetParam().attention},
                      {"projection", static_cast<double>(GetParam().projection)}});
  }
  FineTuning tuning() const {
    return {.embedding = EmbeddingTuning{.projection = GetParam().projection, .train_head = false}};
  }
  /// The mean over queries of the loss, in double, of the model's vectors.
  double DenseLossOf(LanguageModel* model, const GritStepShape& shape) const {
    const AttentionMask mask =
        GetParam().attention == "bb" ? AttentionMask::kBidirectional : AttentionMask::kCausal;
    const auto project = [&](const at::Tensor& vector) {
      const size_t matrix = *model->body().projection();
      const std::vector<Parameter>& parameters = model->parameters().all();
      return parameters[matrix].value.to(at::kDouble).mv(vector).add(parameters[matrix + 1].value);
    };
    std::function<at::Tensor(const at::Tensor&)> projection;
    if (GetParam().projection > 0) projection = project;
    const test::DenseVectors dense = test::DenseVectorsOf(model, test::GritBatchOf(shape, 0, shape.queries),
                                                          GetParam().pooling, mask, projection);
    return test::DenseMean({.temperature = 0.1}, dense.groups, dense.queries_qd, dense.passages_pd);
  }
};

std::vector<FormulaCase> AllFormulas() {
  std::vector<FormulaCase> cases;
  for (const char* pooling : {"mean", "weightedmean", "cls", "lasttoken"}) {
    for (const char* attention : {"bb", "cc"}) cases.push_back({pooling, attention, 0});
  }
  cases.push_back({"mean", "bb", 12});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, GritFormulaTest, testing::ValuesIn(AllFormulas()));

TEST_P(GritFormulaTest, TheLossIsThatOfEveryTextAlone) {
  const auto objective = GritOf(own());
  const GritStepShape shape = ShapeOf(test::SmallLlama(), 8);
  const auto model = test::Lively(test::MakeBody(test::SmallLlama(), test::kFp32Numerics, kCpu, 5, tuning()));
  const StepMade made = TakePasses(*objective, model.get(), GritStepOf(*objective, shape, 3));
  const double expected = DenseLossOf(model.get(), shape);
  EXPECT_GT(expected, 0.01);
  EXPECT_NEAR(made.sums[0] / static_cast<double>(shape.queries), expected, 1e-4 * expected);
}

TEST_P(GritFormulaTest, TheGradientIsTheSlopeOfTheLoss) {
  const auto objective = GritOf(own());
  const GritStepShape shape = ShapeOf(test::SmallLlama(), 8);
  const auto model = ModelOf(test::SmallLlama(), tuning());
  const at::Tensor gradients =
      TakePasses(*objective, model.get(), GritStepOf(*objective, shape, 3)).gradients;
  const double expected = gradients.norm().item<double>();
  const at::Tensor direction = gradients.div(expected), before = model->parameters().values().clone();
  constexpr double kStep = 1e-3;
  const auto loss_at = [&](double distance) {
    model->parameters().values().copy_(before).add_(direction, distance);
    model->parameters().RefreshCompute();
    return DenseLossOf(model.get(), shape);
  };
  const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(slope, expected, 1e-2 * expected);
}

// On several ranks.

/// What a rank's leaves make, each from zero.
std::vector<StepMade> LeavesOf(const GritObjective& objective, LanguageModel* model, const StepBatches& step,
                               int64_t leaves, World* world) {
  StepPass pass = {.model = model, .batches = &step, .seed = 9, .step = 2, .leaves = leaves};
  const std::unique_ptr<StepContext> context = objective.Begin(pass, world);
  const size_t of_leaf = step.micro_batches.size() / static_cast<size_t>(leaves);
  std::vector<StepMade> made;
  for (size_t leaf = 0; leaf < static_cast<size_t>(leaves); ++leaf) {
    const auto part = [&](const auto& all) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(leaf * of_leaf);
      return std::decay_t<decltype(all)>(begin, begin + static_cast<ptrdiff_t>(of_leaf));
    };
    const StepBatches own = {.micro_batches = part(step.micro_batches),
                             .places = part(step.places),
                             .denominators = step.denominators};
    StepPass own_pass = pass;
    own_pass.batches = &own;
    own_pass.context = context.get();
    own_pass.first_micro_batch = leaf * of_leaf;
    model->parameters().ZeroGradients();
    at::Tensor sums = at::zeros({static_cast<int64_t>(objective.terms().size())}, at::kDouble);
    TensorLossSums loss_sums(sums);
    objective.Run(own_pass, &loss_sums);
    made.push_back({.gradients = model->parameters().gradients().clone(), .sums = {sums[0].item<double>()}});
  }
  return made;
}

/// The leaves of a step of `ranks` ranks, all one after the other.
std::vector<StepMade> LeavesOnRanks(const OwnOptions& own, int64_t ranks, int64_t leaves) {
  const auto objective = GritOf(own);
  const GritStepShape shape = ShapeOf(test::SmallLlama());
  const auto of_rank = [&](World* world) {
    const auto model = ModelOf(test::SmallLlama());
    const int64_t first = kQueries * world->rank() / ranks, end = kQueries * (world->rank() + 1) / ranks;
    return LeavesOf(*objective, model.get(), GritStepOf(*objective, shape, 3, first, end), leaves / ranks,
                    world);
  };
  std::vector<StepMade> all;
  if (ranks == 1) return test::OnOneRank(of_rank);
  for (const std::vector<StepMade>& made : test::OnRanks(ranks, of_rank)) {
    all.insert(all.end(), made.begin(), made.end());
  }
  return all;
}

at::Tensor SumOf(const std::vector<StepMade>& leaves) {
  at::Tensor sum = at::zeros_like(leaves.front().gradients);
  for (const StepMade& leaf : leaves) sum.add_(leaf.gradients);
  return sum;
}

class GritRanksTest : public testing::TestWithParam<OwnOptions> {};

INSTANTIATE_TEST_SUITE_P(Options, GritRanksTest,
                         testing::Values(Embedding(), Embedding({{"symmetric", "on"}}),
                                         Embedding({{"mask_false_negatives", "text"}}),
                                         Embedding({{"mask_false_negatives", "margin"}}),
                                         Embedding({{"matryoshka", "8,48"}}), Embedding({{"tile_mb", 1}}),
                                         Embedding({{"no_emb_gas", "on"}})));

TEST_P(GritRanksTest, LeavesHaveTheSameBitsOnAnyNumberOfRanks) {
  const std::vector<StepMade> alone = LeavesOnRanks(GetParam(), 1, 4);
  for (const int64_t ranks : {2, 4}) {
    const std::vector<StepMade> made = LeavesOnRanks(GetParam(), ranks, 4);
    ASSERT_EQ(made.size(), alone.size());
    for (size_t leaf = 0; leaf < alone.size(); ++leaf) {
      EXPECT_TRUE(at::equal(made[leaf].gradients, alone[leaf].gradients)) << ranks << " ranks, " << leaf;
      EXPECT_EQ(made[leaf].sums, alone[leaf].sums) << ranks << " ranks, " << leaf;
    }
  }
}

TEST(GritRanks, TheGradientIsThatOfTheMeanOverAllQueriesWhateverTheRanks) {
  const at::Tensor alone = SumOf(LeavesOnRanks(Embedding(), 1, 1));
  for (const int64_t ranks : {2, 4}) {
    EXPECT_LT(test::RelativeDifference(SumOf(LeavesOnRanks(Embedding(), ranks, ranks)), alone), 1e-6);
  }
}

TEST_P(GritRanksTest, ARankWithoutSamplesChangesNothing) {
  const auto objective = GritOf(GetParam());
  const StepBatches step = GritStepOf(*objective, ShapeOf(test::SmallLlama()), 8);
  const StepBatches none = {.micro_batches = {}, .places = {}, .denominators = step.denominators};
  const auto made_of = [&](const StepBatches& own, World* world) {
    const auto model = ModelOf(test::SmallLlama());
    return TakePasses(*objective, model.get(), own, world);
  };
  const StepMade alone = test::OnOneRank([&](World* world) { return made_of(step, world); });
  const std::vector<StepMade> made =
      test::OnRanks(2, [&](World* world) { return made_of(world->rank() == 0 ? step : none, world); });
  EXPECT_TRUE(at::equal(made[0].gradients, alone.gradients));
  EXPECT_EQ(made[0].sums, alone.sums);
  EXPECT_EQ(made[1].gradients.abs().max().item<double>(), 0.0);
}

TEST(GritRanks, TheScaleOfTheOriginalDividesItByTheRanks) {
  const OwnOptions upstream = Embedding({{"emb_grad_scale", "upstream"}});
  const at::Tensor alone = SumOf(LeavesOnRanks(Embedding(), 1, 1));
  for (const int64_t ranks : {2, 4}) {
    const at::Tensor sum = SumOf(LeavesOnRanks(upstream, ranks, ranks)).mul(static_cast<double>(ranks));
    EXPECT_LT(test::RelativeDifference(sum, alone), 1e-6);
  }
}

TEST(GritRanks, NegativesOfARankAreThoseOfAStepOfItsOwn) {
  const auto whole = GritOf(Embedding());
  const auto model = ModelOf(test::SmallLlama());
  const GritStepShape shape = ShapeOf(test::SmallLlama());
  at::Tensor expected;
  for (const int64_t first : {int64_t{0}, kQueries / 2}) {
    const StepBatches half = GritStepOf(*whole, shape, 3, first, first + kQueries / 2);
    StepBatches alone = half;
    alone.denominators = {kQueries / 2, kQueries / 2};
    const at::Tensor gradients = TakePasses(*whole, model.get(), alone).gradients.div(2);
    expected = expected.defined() ? expected.add(gradients) : gradients;
  }
  const at::Tensor sum = SumOf(LeavesOnRanks(Embedding({{"negatives", "rank"}}), 2, 2));
  EXPECT_LT(test::RelativeDifference(sum, expected), 1e-6);
}

TEST(GritRanks, WhatFailsOnOneFailsOnAll) {
  const auto objective = GritOf(Embedding());
  const GritStepShape shape = ShapeOf(test::SmallLlama());
  const std::vector<bool> failed = test::OnRanks(2, [&](World* world) -> bool {
    const auto model = ModelOf(test::SmallLlama());
    const int64_t first = kQueries / 2 * world->rank();
    StepBatches step = GritStepOf(*objective, shape, 3, first, first + kQueries / 2);
    if (world->rank() == 1) step.micro_batches.back().tokens.front() = 1 << 20;  // outside the vocabulary
    const StepPass pass = {.model = model.get(), .batches = &step};
    return test::CodeOf([&] { objective->Begin(pass, world); }).has_value();
  });
  EXPECT_EQ(failed, (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace trainwright
