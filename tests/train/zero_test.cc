// --zero: each rank updates its part of the weights, and the run is the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/memory/training_memory.h"
#include "lib/spec/reduction_block.h"
#include "tests/train/rank_runs.h"

namespace trainwright {
namespace {

using test::ExpectSamePoint;
using test::RankCase;
using test::RankPoint;
using test::RankRun;
using test::RankRunSetup;
using test::TakeSteps;

constexpr int64_t kZeroLeaves = 4;
constexpr int kZeroSteps = 6;

/// Of six blocks, the last one cut short.
ModelConfig SixBlocks() {
  ModelConfig config = test::TinyModel();
  config.hidden_size = 128;
  config.intermediate_size = 192;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  return config;
}

TrainPlan ZeroPlan(Precision precision = Precision::kFp32) {
  TrainPlan plan = test::TinyPlan(precision);
  plan.batch = 2;
  plan.accum = kZeroLeaves;  // of all ranks together: one micro-batch a leaf
  plan.exact_world = kZeroLeaves;
  plan.clip = 0.3;  // the norm decides each step
  return plan;
}

std::vector<RankCase> ZeroCases() {
  std::vector<RankCase> cases = {
      {.name = "Fp32", .plan = ZeroPlan()},
      {.name = "Bf16", .plan = ZeroPlan(Precision::kBf16)},
      {.name = "Bf16Tied", .plan = ZeroPlan(Precision::kBf16), .tie_embeddings = true},
      {.name = "Bf16Moments", .plan = ZeroPlan(Precision::kBf16)},
      {.name = "Fp16Deferred", .plan = ZeroPlan(Precision::kFp16), .defer = true},
      {.name = "Lora", .plan = ZeroPlan()},
      {.name = "LoraBf16", .plan = ZeroPlan(Precision::kBf16)},
      {.name = "LoraDora", .plan = ZeroPlan()},
      {.name = "LoraDoraBf16", .plan = ZeroPlan(Precision::kBf16)},
      {.name = "LoraOnNf4", .plan = ZeroPlan(Precision::kBf16)},
      {.name = "MicroBatchesWithoutLabels", .plan = ZeroPlan(), .few_labels = true},
      {.name = "Fp16WithOverflows", .plan = ZeroPlan(Precision::kFp16), .overflowing = true}};
  for (RankCase& one : cases) {
    TrainPlan& plan = one.plan;
    if (one.name == "Bf16Moments") plan.optimizer.states = OptimizerStates::kBf16;
    if (one.name.starts_with("Lora")) plan.tuning.lora = LoraOptions{.rank = 64, .alpha = 64, .dropout = 0.2};
    if (one.name.starts_with("LoraDora")) plan.tuning.lora->dora = true;
    if (one.name == "MicroBatchesWithoutLabels") plan.batch = 1;
    if (one.name == "LoraOnNf4") plan.tuning.frozen_format = WeightFormat::kNf4;
  }
  return cases;
}

/// In the first step or steps, whose loss scales are the highest, of those that are taken here.
std::unique_ptr<LanguageModel> Overflowing(World* /*world*/, LanguageModel* model) {
  return std::make_unique<test::SometimesOverflowing>(model, /*most_scale=*/41400);
}

class ZeroTest : public testing::TestWithParam<RankCase> {
 protected:
  RankRunSetup setup(int64_t zero) const {
    RankRunSetup setup = {.set = GetParam().few_labels ? &few_labels_ : &set_,
                          .plan = GetParam().plan,
                          .model = SixBlocks(),
                          .tie_embeddings = GetParam().tie_embeddings,
                          .defer = GetParam().defer,
                          .bucket_bytes = 300000};
    setup.plan.zero = zero;
    if (GetParam().overflowing) setup.wrap = Overflowing;
    return setup;
  }

  const test::MemoryShardSet set_ = test::CountingDocuments(), few_labels_ = test::HalfWithoutLabels();
};

TEST_P(ZeroTest, EndsInTheBitsOfOneProcessAtEachStage) {
  const RankPoint alone = TakeSteps(setup(0), 1, kZeroSteps)[0];
  EXPECT_GT(alone.weights.numel(), 4 * kReductionBlock) << "each of four ranks has a block";
  EXPECT_GT(alone.state.updates, 1);
  if (GetParam().overflowing) {
    EXPECT_GT(alone.state.scaler.skipped_steps, 0);
  }
  for (const int64_t zero : {0, 1, 2}) {
    for (const int64_t ranks : {1, 2, 4}) {
      const std::vector<RankPoint> points = TakeSteps(setup(zero), ranks, kZeroSteps);
      for (size_t rank = 0; rank < points.size(); ++rank) {
        ExpectSamePoint(points[rank], alone,
                        "--zero " + std::to_string(zero) + ", rank " + std::to_string(rank) + " of " +
                            std::to_string(ranks));
      }
    }
  }
}

TEST_P(ZeroTest, IsTheSameRunWhereRanksAndStageChangeOnTheWay) {
  const RankPoint alone = TakeSteps(setup(0), 1, kZeroSteps)[0];
  const struct {
    int64_t ranks, zero;
    int steps;
  } parts[] = {{4, 2, 2}, {1, 1, 1}, {2, 1, 1}, {4, 0, 1}, {2, 2, 1}};
  std::vector<RankPoint> points;
  for (const auto& [ranks, zero, steps] : parts) {
    const std::vector<RankPoint> before = std::move(points);
    points = TakeSteps(setup(zero), ranks, steps, before.empty() ? nullptr : &before.back());
  }
  ExpectSamePoint(points.front(), alone, "4, 1, 2, 4 and 2 ranks");
}

INSTANTIATE_TEST_SUITE_P(Runs, ZeroTest, testing::ValuesIn(ZeroCases()),
                         [](const auto& info) { return info.param.name; });

/// Without exact leaves, with micro-batches whose gradients may be given away one after the other.
RankRunSetup Accumulating(const ShardSet* set, int64_t zero, ZeroAccumulation accumulation) {
  RankRunSetup setup = {.set = set, .plan = ZeroPlan(), .model = SixBlocks(), .bucket_bytes = 300000};
  setup.plan.exact_world = 0;
  setup.plan.accum = 8;
  setup.plan.zero = zero;
  setup.plan.zero_accumulation = accumulation;
  return setup;
}

/// Whether some micro-batches have no label.
class ZeroAccumulationTest : public testing::TestWithParam<bool> {
 protected:
  RankRunSetup setup(int64_t zero, ZeroAccumulation accumulation) const {
    RankRunSetup setup = Accumulating(&set_, zero, accumulation);
    if (GetParam()) setup.plan.batch = 1;
    return setup;
  }
  const test::MemoryShardSet set_ = GetParam() ? test::HalfWithoutLabels() : test::CountingDocuments();
};

TEST_P(ZeroAccumulationTest, AllRanksHaveTheWeightsOfOneProcessWithinRounding) {
  const RankRunSetup one = setup(0, ZeroAccumulation::kKeep);
  const at::Tensor start = RankRun(one, Solo()).model->parameters().values().clone();
  const RankPoint alone = TakeSteps(one, 1, kZeroSteps)[0];
  const double travelled = alone.weights.sub(start).norm().item<double>();
  for (const int64_t zero : {1, 2}) {
    for (const ZeroAccumulation accumulation : {ZeroAccumulation::kReduce, ZeroAccumulation::kKeep}) {
      const std::vector<RankPoint> points = TakeSteps(setup(zero, accumulation), 4, kZeroSteps);
      for (const RankPoint& point : points) {
        EXPECT_LT(point.weights.sub(alone.weights).norm().item<double>(), 1e-3 * travelled)
            << "--zero " << zero << " --zero-accum " << ZeroAccumulationName(accumulation);
        EXPECT_EQ(point.sha256(), points[0].sha256());
        EXPECT_NEAR(point.reports[0].grad_norm, alone.reports[0].grad_norm,
                    1e-6 * alone.reports[0].grad_norm);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Labels, ZeroAccumulationTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfSomeMicroBatches" : "OfAll"; });

TEST(ZeroRounds, AnOverflowInOneMicroBatchIsASkippedStepOnAllRanks) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = Accumulating(&set, 2, ZeroAccumulation::kReduce);
  setup.plan.precision = Precision::kFp16;
  setup.wrap = Overflowing;
  const RankPoint alone = TakeSteps(setup, 1, kZeroSteps)[0];
  ASSERT_GT(alone.state.updates, 1);
  ASSERT_GT(alone.state.scaler.skipped_steps, 0);
  for (const RankPoint& point : TakeSteps(setup, 4, kZeroSteps)) {
    EXPECT_EQ(point.state.updates, alone.state.updates);
    EXPECT_EQ(point.state.scaler, alone.state.scaler);
    for (size_t i = 0; i < point.reports.size(); ++i) {
      EXPECT_EQ(point.reports[i].skipped, alone.reports[i].skipped) << "step " << i + 1;
    }
  }
}

/// Fails once, in a pass of its own count.
class FailsOnce final : public LanguageModel {
 public:
  FailsOnce(LanguageModel* model, int pass) : LanguageModel(model->shared_body()), left_(pass) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    if (--left_ == 0) throw std::bad_alloc();
    return LanguageModel::LossAndGradients(input, scale);
  }

 private:
  int left_;
};

TEST(ZeroRounds, AFailureInTheSecondOneIsThatOfTheStepOnAllRanksWhichThenTakeItAgain) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = Accumulating(&set, 2, ZeroAccumulation::kReduce);  // two a step on each of four ranks
  const std::string expected = TakeSteps(setup, 4, 3)[0].sha256();
  setup.wrap = [](World* world, LanguageModel* model) {
    return std::make_unique<FailsOnce>(model, world->rank() == 2 ? 2 + 2 : 0);
  };
  test::ThreadWorld world(4);
  const auto points = world.Run([&](World* own) {
    RankRun run(setup, own);
    run.trainer->Step();
    EXPECT_THROW(run.trainer->Step(), std::bad_alloc) << "rank " << own->rank();
    run.trainer->Step();
    run.trainer->Step();
    return run.point();
  });
  for (const RankPoint& point : points) EXPECT_EQ(point.sha256(), expected);
}

TEST(ZeroRounds, GradientsOfOneMicroBatchAreStillGivenAwayWhereItIsHalvedAndThePlanSaysSo) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = Accumulating(&set, 2, ZeroAccumulation::kReduce);
  const std::string expected = TakeSteps(setup, 4, 3)[0].sha256();
  setup.plan.batch *= 2;
  setup.plan.accum = 4;  // one a rank
  setup.plan.zero_accumulation = ZeroAccumulation::kKeep;
  test::ThreadWorld world(4);
  const auto points = world.Run([&](World* own) {
    RankRun run(setup, own);
    EXPECT_TRUE(run.trainer->HalveMicroBatches());
    EXPECT_EQ(run.trainer->plan().zero_accumulation, ZeroAccumulation::kReduce);
    for (int step = 0; step < 3; ++step) run.trainer->Step();
    return run.point();
  });
  for (const RankPoint& point : points) EXPECT_EQ(point.sha256(), expected);
}

/// What a rank holds after two steps.
MemoryParts HeldBy(const RankRunSetup& setup, World* world) {
  RankRun run(setup, world);
  run.trainer->Step();
  run.trainer->Step();
  MemoryParts held = HeldByModel(*run.model);
  held.optimizer = run.trainer->optimizer().state_bytes();
  held.exchange = run.trainer->exchange_bytes();
  return held;
}

MemoryParts Foretold(const RankRunSetup& setup, int64_t ranks) {
  TrainPlan plan = setup.plan;
  plan.ranks = ranks;
  plan.accum /= ranks;
  const MemoryRequest request = {
      .model = setup.model,
      .precision = plan.precision,
      .tuning = plan.tuning,
      .optimizer = plan.optimizer,
      .optimizers = BuiltInOptimizers(),
      .ranks = ranks,
      .sharding = plan.sharding(),
      .gives_gradients_away = plan.gives_gradients_away(),
      .exchange = {.bucket_bytes = setup.bucket_bytes, .exact_leaves = plan.exact_world}};
  return TrainingMemory(test::Families(), request, EqualSamples(plan.batch, plan.sequence_tokens));
}

class ZeroMemoryTest : public testing::TestWithParam<int64_t> {};

TEST_P(ZeroMemoryTest, OfTheFirstRankIsForetoldAndFallsWithTheRanks) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = {.set = &set, .plan = ZeroPlan(Precision::kBf16), .model = SixBlocks()};
  setup.bucket_bytes = 300000;
  setup.plan.accum = 4;
  setup.plan.exact_world = 0;
  setup.plan.zero = GetParam();
  const int64_t blocks = 6;
  for (const int64_t ranks : {2, 4}) {
    test::ThreadWorld world(ranks);
    const std::vector<MemoryParts> held = world.Run([&](World* own) { return HeldBy(setup, own); });
    const MemoryParts told = Foretold(setup, ranks);
    EXPECT_EQ(held[0].parameters, told.parameters) << ranks;
    EXPECT_EQ(held[0].optimizer, told.optimizer) << ranks;
    EXPECT_EQ(held[0].gradients, told.gradients) << ranks;
    EXPECT_EQ(held[0].compute_copy, told.compute_copy) << ranks;
    EXPECT_EQ(held[0].exchange, told.exchange) << ranks;
    const int64_t own_blocks = (blocks + ranks - 1) / ranks;
    EXPECT_LE(held[0].optimizer, 8 * own_blocks * kReductionBlock) << ranks;
    EXPECT_GT(held[0].optimizer, 8 * (own_blocks - 1) * kReductionBlock) << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, ZeroMemoryTest, testing::Values(1, 2));

}  // namespace
}  // namespace trainwright
