#include "lib/scaling/rank_memory.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

constexpr int64_t kBlock = kReductionBlock, kElements = 16 * kBlock;

/// 16 blocks: embeddings of 4, a layer of 8, a head of 4.
RankPlan Plan(int64_t ranks, Sharding sharding) {
  return {.ranks = ranks,
          .sharding = sharding,
          .bucket_bytes = 100,  // so a block of each rank
          .weight_bytes = 2,
          .segment_elements = {4 * kBlock, 8 * kBlock, 4 * kBlock}};
}

/// In bf16: masters, gradients and two moments in fp32, a copy in two bytes.
MemoryParts Alone() {
  return {.parameters = 4 * kElements,
          .gradients = 4 * kElements,
          .optimizer = 8 * kElements,
          .compute_copy = 2 * kElements,
          .activations = 777,
          .process = 99};
}

TEST(MemoryOfRankTest, OfDataParallelIsThatOfARunAlone) {
  EXPECT_EQ(MemoryOfRank(Alone(), Plan(4, Sharding::kNone)), RankMemory{.parts = Alone()});
  EXPECT_EQ(MemoryOfRank(Alone(), Plan(1, Sharding::kGradients)), RankMemory{.parts = Alone()});
}

TEST(MemoryOfRankTest, OfTheFirstStageHasAQuarterOfMomentsAndMasters) {
  const RankMemory memory = MemoryOfRank(Alone(), Plan(4, Sharding::kOptimizer));
  MemoryParts expected = Alone();
  expected.parameters /= 4;
  expected.optimizer /= 4;
  EXPECT_EQ(memory.parts, expected);
  // Four buckets of four blocks, packed and received; a block and those of four ranks, twice, of new weights.
  const int64_t exchange = 4 * (4 + 4) * kBlock * 4 + 2 * (1 + 4) * kBlock * 2;
  EXPECT_EQ(memory.exchange, exchange);
  EXPECT_EQ(memory.of_model(), expected.of_model() + exchange);
  EXPECT_EQ(memory.total(), memory.of_model() + 99);
}

TEST(MemoryOfRankTest, OfMastersThatThePassesReadACopyStaysWhole) {
  RankPlan plan = Plan(4, Sharding::kOptimizer);
  const int64_t exchange = MemoryOfRank(Alone(), plan).exchange;
  plan.fp32_copies = {{.begin = 0, .end = 4 * kBlock}};
  EXPECT_EQ(MemoryOfRank(Alone(), plan).parts.parameters, 4 * (4 + 4) * kBlock);
  EXPECT_EQ(MemoryOfRank(Alone(), plan).exchange, exchange + (1 + 4) * kBlock * 4) << "a block of each rank";
}

TEST(MemoryOfRankTest, OfFp32WeightsThatThePassesReadStaysWhole) {
  MemoryParts alone = Alone();
  alone.compute_copy = 0;
  EXPECT_EQ(MemoryOfRank(alone, Plan(4, Sharding::kOptimizer)).parts.parameters, alone.parameters);
}

TEST(MemoryOfRankTest, OfTheSecondStageHasAQuarterOfGradientsAndTheSegmentAtWork) {
  EXPECT_EQ(MemoryOfRank(Alone(), Plan(4, Sharding::kGradients)).parts.gradients, 4 * (4 + 8) * kBlock);
}

TEST(MemoryOfRankTest, OfTheSecondStageHasTheGradientsOfAllSegmentsOfABucket) {
  RankPlan plan = Plan(4, Sharding::kGradients);
  plan.bucket_bytes = 12 * kBlock * 4;  // head and layer, then the embeddings
  EXPECT_EQ(MemoryOfRank(Alone(), plan).parts.gradients, 4 * (4 + 12) * kBlock);
}

TEST(MemoryOfRankTest, ExactLeavesOfDataParallelPackWhatOwnersSendBackToo) {
  RankPlan plan = Plan(4, Sharding::kNone);
  plan.exact_leaves = 4;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).exchange, 4 * (4 + 4) * kBlock * 4);
  plan.ranks = plan.exact_leaves = 64;  // 16 blocks: one bucket, of which 16 ranks own one each
  EXPECT_EQ(MemoryOfRank(Alone(), plan).exchange, (64 + 64) * kBlock * 4);
}

TEST(MemoryOfRankTest, OfTheSecondStageKeepsAStepsGradientsUnlessEachMicroBatchGivesItsOwnAway) {
  RankPlan plan = Plan(4, Sharding::kGradients);
  plan.accum = 2;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).parts.gradients, Alone().gradients);
  plan.accumulation = ZeroAccumulation::kReduce;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).parts.gradients, 4 * (4 + 8) * kBlock);
}

TEST(MemoryOfRankTest, ShardsAreWholeBlocksOfTheRankThatHasMost) {
  // 16 blocks on 3 ranks: 6, 5 and 5.
  EXPECT_EQ(MemoryOfRank(Alone(), Plan(3, Sharding::kOptimizer)).parts.optimizer, 8 * 6 * kBlock);
  // On more ranks than blocks a rank has one.
  EXPECT_EQ(MemoryOfRank(Alone(), Plan(64, Sharding::kOptimizer)).parts.optimizer, 8 * kBlock);
}

TEST(MemoryOfRankTest, ExactLeavesTakeABufferForEachLevelOfARanksTree) {
  RankPlan plan = Plan(2, Sharding::kNone);
  plan.exact_leaves = 16;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).leaf_sums, 3 * Alone().gradients);  // 8 leaves a rank
  plan.ranks = 1;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).leaf_sums, 4 * Alone().gradients);
  plan.ranks = 16;
  EXPECT_EQ(MemoryOfRank(Alone(), plan).leaf_sums, 0);
}

TEST(MemoryOfRankTest, SumsOfLeavesOfARunAloneAreCountedOnce) {
  MemoryParts alone = Alone();
  alone.exchange = 4 * alone.gradients;
  for (const int64_t ranks : {1, 2, 16}) {
    RankPlan plan = Plan(ranks, Sharding::kNone);
    plan.exact_leaves = 16;
    EXPECT_EQ(MemoryOfRank(alone, plan), MemoryOfRank(Alone(), plan)) << ranks << " ranks";
  }
}

TEST(MemoryOfRankTest, ShardedPartsFallWithEveryDoublingOfRanks) {
  int64_t before = INT64_MAX;
  for (int64_t ranks = 2; ranks <= 16; ranks *= 2) {
    const int64_t optimizer = MemoryOfRank(Alone(), Plan(ranks, Sharding::kOptimizer)).parts.optimizer;
    EXPECT_EQ(optimizer, Alone().optimizer / ranks);
    EXPECT_LT(optimizer, before);
    before = optimizer;
  }
}

}  // namespace
}  // namespace trainwright
