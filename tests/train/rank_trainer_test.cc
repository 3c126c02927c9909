// What a trainer does as one of several ranks: ranks that are threads of this process.
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/train/trainer.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/support.h"
#include "tests/train/rank_one.h"
#include "tests/train/thread_world.h"
#include "tests/train/tiny_training.h"
#include "tests/train/toy_objective.h"

namespace trainwright {
namespace {

constexpr int64_t kSamples = 12;  // of a step

/// What a rank has of its first step.
struct FirstStep {
  StepReport report;
  at::Tensor gradients;
  SampleCursor cursor;
};

/// How a step is split.
struct Split {
  int64_t ranks = 1, batch = kSamples;
};

/// The first step as a rank takes it, of a model that drops elements of its adapters' inputs.
FirstStep Take(const ShardSet& set, const Split& split, World* world) {
  TrainPlan plan = test::TinyPlan();
  plan.batch = split.batch;
  plan.accum = kSamples / split.ranks / split.batch;
  plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed,
                AttentionBackend::kAuto, plan.tuning);
  for (const Parameter& parameter : model->parameters().all()) {
    if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
  }
  model->parameters().RefreshCompute();
  SampleStream stream(&set, plan.stream_options());
  TrainerParts parts = test::PartsOf(model.get(), &stream, plan);
  parts.world = world;
  Trainer trainer(std::move(parts), plan, at::Device(at::kCPU));
  FirstStep taken;
  taken.report = trainer.Step();
  taken.gradients = model->parameters().gradients().clone();
  taken.cursor = stream.cursor();
  return taken;
}

class RanksTest : public testing::TestWithParam<Split> {
 protected:
  std::vector<FirstStep> TakeOnAllRanks() {
    test::ThreadWorld world(GetParam().ranks);
    std::vector<std::future<FirstStep>> running;
    for (int64_t rank = 0; rank < GetParam().ranks; ++rank) {
      running.push_back(
          std::async(std::launch::async, [&, rank] { return Take(set_, GetParam(), world.rank(rank)); }));
    }
    std::vector<FirstStep> taken;
    for (std::future<FirstStep>& one : running) taken.push_back(one.get());
    return taken;
  }
  const test::MemoryShardSet set_ = test::CountingDocuments();
};

TEST_P(RanksTest, AddUpToTheGradientsOfOneWithTheSameDropout) {
  const FirstStep whole = Take(set_, {}, Solo());
  at::Tensor sum = at::zeros_like(whole.gradients);
  for (const FirstStep& part : TakeOnAllRanks()) {
    EXPECT_GT(part.gradients.sub(whole.gradients).abs().max().item<float>(), 1e-3) << "all on one rank";
    sum.add_(part.gradients);
  }
  EXPECT_LT(sum.sub(whole.gradients).abs().max().item<float>(), 1e-6);
}

TEST_P(RanksTest, CountTheWholeStepAndDivideByIt) {
  const FirstStep whole = Take(set_, {}, Solo());
  double loss_nats = 0;
  for (const FirstStep& part : TakeOnAllRanks()) {
    EXPECT_EQ(part.report.tokens, whole.report.tokens);
    EXPECT_EQ(part.report.labels, whole.report.labels);
    EXPECT_EQ(part.report.attention_pairs, whole.report.attention_pairs);
    EXPECT_EQ(part.cursor, whole.cursor);
    loss_nats += part.report.loss_nats;  // of its samples, over the labels of all
  }
  EXPECT_NEAR(loss_nats, whole.report.loss_nats, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Splits, RanksTest,
                         testing::Values(Split{.ranks = 2, .batch = 3}, Split{.ranks = 2, .batch = 1},
                                         Split{.ranks = 3, .batch = 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "RanksOfBatch" +
                                  std::to_string(info.param.batch);
                         });

/// The first step as a rank draws it from two loaders.
/// \returns the second one's cursor, too
FirstStep TakeFromTwoLoaders(const ShardSet& set, int64_t ranks, World* world) {
  TrainPlan plan = test::TinyPlan();
  plan.batch = kSamples / ranks;
  plan.accum = 1;
  plan.clip = 0;  // which scales gradients by the norm of a rank's own
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
  auto objective = std::make_unique<test::TwoLoaderToy>(0.25);
  const OpenedLoaders loaders = objective->OpenLoaders(&set, plan.stream_options(), {});
  Trainer trainer(
      {.model = model.get(),
       .loaders = LoadersOf(loaders),
       .objective = std::move(objective),
       .optimizer = MakeOptimizer(BuiltInOptimizers(), &model->parameters(), plan.optimizer, plan.seed),
       .world = world},
      plan, at::Device(at::kCPU));
  FirstStep taken;
  taken.report = trainer.Step();
  taken.gradients = model->parameters().gradients().clone();
  taken.cursor = loaders.at(test::kSecondLoader)->cursor();
  return taken;
}

TEST(RankTrainer, DrawsFromSeveralLoadersWhatOneRankAloneDraws) {
  const test::MemoryShardSet set = test::CountingDocuments(24, test::kToyRecords);
  const FirstStep whole = TakeFromTwoLoaders(set, 1, Solo());
  EXPECT_EQ(whole.cursor.sample, uint64_t{kSamples / 2});
  test::ThreadWorld world(2);
  auto other = std::async(std::launch::async, [&] { return TakeFromTwoLoaders(set, 2, world.rank(1)); });
  const FirstStep one = TakeFromTwoLoaders(set, 2, world.rank(0)), two = other.get();
  EXPECT_LT(one.gradients.add(two.gradients).sub(whole.gradients).abs().max().item<float>(), 1e-6);
  EXPECT_EQ(one.report.tokens, whole.report.tokens);
  EXPECT_EQ(one.cursor, whole.cursor);
  EXPECT_EQ(two.cursor, whole.cursor);
}

/// Eight chunks of a document each.
std::vector<Chunk> Documents() {
  constexpr uint32_t kTokens = 16;
  std::vector<Chunk> chunks(8);
  for (Chunk& chunk : chunks) {
    chunk.segments = {{.tokens = kTokens, .source_bytes = kTokens}};
    for (uint32_t i = 0; i < kTokens; ++i) chunk.tokens.push_back(i);
  }
  return chunks;
}

/// \returns what the step ends with
std::optional<ErrorCode> CodeOfStep(const ShardSet& set, World* world) {
  try {
    Take(set, {.ranks = 2, .batch = 3}, world);
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(RankTrainer, WhatOneRankCannotReadEndsTheStepOfAll) {
  const test::FaultyShardSet sound(Documents(), 4);
  test::FaultyShardSet corrupt(Documents(), 4);
  for (uint64_t chunk = 0; chunk < corrupt.chunks(); ++chunk) corrupt.corrupt.insert(chunk);
  test::ThreadWorld world(2);
  auto other = std::async(std::launch::async, [&] { return CodeOfStep(sound, world.rank(0)); });
  EXPECT_EQ(CodeOfStep(corrupt, world.rank(1)), ErrorCode::kBadInput);
  EXPECT_EQ(other.get(), ErrorCode::kIo);
}

TEST(RankTrainer, EndsAtTheNextLookWhereTheNumbersOfRankZeroAreNotFinite) {
  const test::MemoryShardSet set = test::CountingDocuments();
  const TrainPlan plan = test::TinyPlan();
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
  SampleStream stream(&set, plan.stream_options());
  test::RankOne world([](test::Moment moment, int64_t) {
    return std::vector<int64_t>{moment == test::Moment::kOtherwise ? 2 : 0};  // the second step is bad
  });
  TrainerParts parts = test::PartsOf(model.get(), &stream, plan);
  parts.world = &world;
  Trainer trainer(std::move(parts), plan, at::Device(at::kCPU), /*defer=*/true);
  for (int step = 1; step <= 3; ++step) trainer.Step(/*read=*/false);
  EXPECT_EQ(test::CodeOf([&] { trainer.Look(); }), ErrorCode::kNonFinite);
}

}  // namespace
}  // namespace trainwright
