#include "lib/scaling/step_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lib/spec/llama_family.h"

namespace trainwright {
namespace {

constexpr int64_t kUnit = 2 * kReductionBlock;  ///< elements: a block of each of two ranks
constexpr Link kUnitLink = {.bytes_per_s = kUnit, .latency_s = 0};
/// Of kSmallExchanges sums of kSmallExchangeBytes on two ranks.
constexpr int64_t kSmallBytesOfTwo = 5 * 64;
constexpr double kSmallOfTwo_s = 1.0 * kSmallBytesOfTwo / kUnit;

/// Embeddings of 1 unit, two layers of 2, a head of 3; each element travels in a bucket of its segment.
RankPlan Plan(int64_t ranks, Sharding sharding) {
  return {.ranks = ranks,
          .sharding = sharding,
          .bucket_bytes = 12 * kUnit,
          .weight_bytes = 2,
          .segment_elements = {kUnit, 2 * kUnit, 2 * kUnit, 3 * kUnit}};
}

/// 100 s forward, backward 20 s the head, 40 s a layer.
StepCosts Costs() {
  return {.passes_s = {.forward = 100, .backward = {0, 40, 40, 20}}, .update_s = 8};
}

TEST(EstimateStepTest, OfDataParallelIsTheHandWorkedOne) {
  // Two ranks send as many bytes as the gradients have: buckets of 12 units (head), 8, 8 + 4 (layer,
  // embeddings).
  const StepEstimate step = EstimateStep(Plan(2, Sharding::kNone), kUnitLink, Costs());
  EXPECT_EQ(step.gradients, (Traffic{.sent_bytes = 32 * kUnit, .messages = 6}));
  EXPECT_EQ(step.weights, Traffic());
  EXPECT_EQ(step.small, (Traffic{.sent_bytes = kSmallBytesOfTwo, .messages = 10}));
  // Head ready at 20, through at 32; layer 60 to 68; the rest 100 to 112.
  EXPECT_EQ(step.hidden_s, 20);
  EXPECT_EQ(step.alone_s, 208);
  EXPECT_EQ(step.step_s, 200 + 8 + 12 + kSmallOfTwo_s);
  EXPECT_EQ(step.link_s, 32 + kSmallOfTwo_s);
}

TEST(EstimateStepTest, OfTheFirstStageSendsHalfOfItAsGradientsAndThenTheNewWeights) {
  const StepEstimate step = EstimateStep(Plan(2, Sharding::kOptimizer), kUnitLink, Costs());
  EXPECT_EQ(step.gradients, (Traffic{.sent_bytes = 16 * kUnit, .messages = 3}));
  // As many bytes as a bucket's, of half the size an element: 6 units and 2.
  EXPECT_EQ(step.weights, (Traffic{.sent_bytes = 8 * kUnit, .messages = 2}));
  EXPECT_EQ(step.step_s, 200 + 8 / 2 + 6 + 8 + kSmallOfTwo_s);
}

TEST(EstimateStepTest, OfTheSecondStageSendsOnceAStepOrOnceAMicroBatch) {
  RankPlan plan = Plan(2, Sharding::kGradients);
  plan.accum = 3;
  EXPECT_EQ(EstimateStep(plan, kUnitLink, Costs()).gradients.sent_bytes, 16 * kUnit);
  plan.accumulation = ZeroAccumulation::kReduce;
  const StepEstimate step = EstimateStep(plan, kUnitLink, Costs());
  EXPECT_EQ(step.gradients, (Traffic{.sent_bytes = 48 * kUnit, .messages = 9}));
  EXPECT_EQ(step.step_s, 3 * 200 + 8 / 2 + 3 * 6 + 8 + kSmallOfTwo_s);
}

TEST(EstimateStepTest, WhatIsGatheredBeforeTheBackwardPassesIsWaitedFor) {
  RankPlan plan = Plan(4, Sharding::kNone);
  const StepEstimate without = EstimateStep(plan, kUnitLink, Costs());
  plan.gathered_bytes = {2 * kUnit, 3 * kUnit};
  const StepEstimate step = EstimateStep(plan, kUnitLink, Costs());
  EXPECT_EQ(step.gathered, (Traffic{.sent_bytes = 3 * 5 * kUnit, .messages = 6})) << "to three others";
  EXPECT_DOUBLE_EQ(step.step_s, without.step_s + 15);
  EXPECT_EQ(step.hidden_s, without.hidden_s);
}

TEST(EstimateStepTest, OfOneRankIsThatOfARunAlone) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kGradients}) {
    const StepEstimate step = EstimateStep(Plan(1, sharding), kUnitLink, Costs());
    EXPECT_EQ(step.sent(), Traffic());
    EXPECT_EQ(step.step_s, 208);
    EXPECT_EQ(step.efficiency(), 1);
  }
}

TEST(EstimateStepTest, TellsBytesOfAStepWhoseTimeIsNotKnown) {
  StepCosts costs = Costs();
  costs.passes_s = costs.passes_s.ScaledTo(0);
  const StepEstimate step = EstimateStep(Plan(2, Sharding::kNone), kUnitLink, costs);
  EXPECT_EQ(step.gradients.sent_bytes, 32 * kUnit);
  EXPECT_EQ(step.step_s, 0);
  EXPECT_EQ(step.efficiency(), 0);
}

TEST(EstimateStepTest, SendsTheGradientsOfAnEightBillionModelAsPublished) {
  ModelConfig llama;
  llama.family = &LlamaFamily();
  llama.vocab_size = 128256;
  llama.hidden_size = 4096;
  llama.intermediate_size = 14336;
  llama.num_layers = 32;
  llama.num_heads = 32;
  llama.num_kv_heads = 8;
  llama.head_dim = 128;
  ASSERT_EQ(CountParameters(llama), 8'030'261'248);  // Llama 3 8B's model card
  RankPlan plan = {.ranks = 8, .bucket_bytes = int64_t{25} << 20};
  plan.segment_elements.assign(34, 218'112'000);  // a layer
  plan.segment_elements.front() = 128256 * 4096;
  plan.segment_elements.back() = 128256 * 4096 + 4096;
  ASSERT_EQ(plan.elements(), CountParameters(llama));
  const StepEstimate ddp = EstimateStep(plan, kUnitLink, {});
  EXPECT_EQ(ddp.gradients.sent_bytes, 2 * 7 * (8'030'261'248 / 8) * 4);
  plan.sharding = Sharding::kOptimizer;
  plan.weight_bytes = 2;
  const StepEstimate zero = EstimateStep(plan, kUnitLink, {});
  // Layers do not end with whole blocks of each rank.
  const int64_t half = ddp.gradients.sent_bytes / 2;
  EXPECT_GE(zero.gradients.sent_bytes, half);
  EXPECT_LT(zero.gradients.sent_bytes, half + half / 1000);
  EXPECT_GE(zero.weights.sent_bytes, half / 2);
  EXPECT_LT(zero.weights.sent_bytes, half / 2 + half / 1000);
}

TEST(EstimateStepTest, ExactLeavesSendTheirGradientsToTheOwnersAndTheSumsBack) {
  RankPlan plan = Plan(2, Sharding::kNone);
  plan.exact_leaves = 2;
  EXPECT_EQ(EstimateStep(plan, kUnitLink, Costs()).gradients,
            (Traffic{.sent_bytes = 32 * kUnit, .messages = 6}));
  // 35 blocks on 16 ranks: 32, of which each owner has 2, and 3, of which an owner has 1.
  plan = {.ranks = 16,
          .bucket_bytes = 32 * kReductionBlock * 4,
          .exact_leaves = 16,
          .segment_elements = {35 * kReductionBlock}};
  EXPECT_EQ(EstimateStep(plan, kUnitLink, {}).gradients,
            (Traffic{.sent_bytes = 2 * 15 * (2 + 1) * kReductionBlock * 4, .messages = 2 * 2 * 15}));
}

TEST(EstimateStepTest, WhereABucketHadNoBlockOfSomeRankItGrows) {
  RankPlan plan = {.ranks = 512,
                   .sharding = Sharding::kOptimizer,
                   .bucket_bytes = int64_t{25} << 20,  // 100 blocks
                   .segment_elements = {1024 * kReductionBlock}};
  EXPECT_EQ(EstimateStep(plan, kUnitLink, {}).gradients,
            (Traffic{.sent_bytes = 511 * 2 * kReductionBlock * 4, .messages = 2 * 511}));
}

struct Drawn {
  RankPlan plan;
  StepCosts costs;
};

Drawn Draw(std::mt19937* random) {
  Drawn drawn;
  RankPlan& plan = drawn.plan;
  plan.ranks = int64_t{2} << (*random)() % 6;
  plan.sharding = static_cast<Sharding>((*random)() % 3);
  plan.accumulation = (*random)() % 2 == 0 ? ZeroAccumulation::kReduce : ZeroAccumulation::kKeep;
  plan.accum = static_cast<int64_t>(1 + (*random)() % 3);
  plan.bucket_bytes = static_cast<int64_t>(4 + (*random)() % 400);
  for (size_t i = 2 + (*random)() % 6; i > 0; --i) {
    plan.segment_elements.push_back(static_cast<int64_t>(1 + (*random)() % 200));
    drawn.costs.passes_s.backward.push_back(static_cast<double>((*random)() % 50));
  }
  drawn.costs.passes_s.forward = static_cast<double>(1 + (*random)() % 100);
  drawn.costs.update_s = static_cast<double>((*random)() % 10);
  return drawn;
}

TEST(EstimateStepTest, MoreBandwidthAndLessLatencyAreNeverSlower) {
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    const Drawn drawn = Draw(&random);
    double before_s = INFINITY;
    for (const double bytes_per_s : {1.0, 2.0, 50.0, 1e3, 1e9}) {
      const double step_s =
          EstimateStep(drawn.plan, {.bytes_per_s = bytes_per_s, .latency_s = 0.1}, drawn.costs).step_s;
      EXPECT_LE(step_s, before_s);
      before_s = step_s;
    }
    before_s = INFINITY;
    for (const double latency_s : {1.0, 0.1, 0.0}) {
      const double step_s =
          EstimateStep(drawn.plan, {.bytes_per_s = 10, .latency_s = latency_s}, drawn.costs).step_s;
      EXPECT_LE(step_s, before_s);
      before_s = step_s;
    }
  }
}

TEST(EstimateStepTest, DataParallelIsNeverFasterThanRanksThatNeedNotWait) {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    Drawn drawn = Draw(&random);
    drawn.plan.sharding = Sharding::kNone;
    const StepEstimate step = EstimateStep(drawn.plan, {.bytes_per_s = 100, .latency_s = 0.01}, drawn.costs);
    EXPECT_LE(step.efficiency(), 1);
    EXPECT_GE(step.step_s, step.alone_s);
    EXPECT_NEAR(step.step_s, step.alone_s + step.link_s - step.hidden_s, 1e-9 * step.step_s);
  }
}

TEST(EstimateStepTest, OneBucketHidesNothing) {
  RankPlan plan = Plan(4, Sharding::kNone);
  plan.bucket_bytes = 1 << 30;
  EXPECT_EQ(EstimateStep(plan, kUnitLink, Costs()).hidden_s, 0);
}

}  // namespace
}  // namespace trainwright
