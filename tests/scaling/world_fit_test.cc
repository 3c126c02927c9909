#include "lib/scaling/world_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "lib/scaling/rank_memory.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 100'000 * kReductionBlock, kUnit = 100'000'000, kTokenBytes = 100'000;

/// A model of 65.5 units of elements in bf16; the passes of a sample's token take kTokenBytes, a tenth with
/// full recomputation. The buckets of few ranks are small beside it.
MemoryParts Memory(const PassesChoice& passes) {
  if (passes.adapters) return {.gradients = kUnit, .frozen = kElements / 2};
  const int64_t token_bytes =
      passes.checkpointing == ActivationCheckpointing::kFull ? kTokenBytes / 10 : kTokenBytes;
  return {.parameters = 4 * kElements,
          .gradients = 4 * kElements,
          .optimizer = 8 * kElements,
          .compute_copy = 2 * kElements,
          .activations = passes.batch * passes.sequence_tokens * token_bytes};
}

FitRequest Request(int64_t memory_bytes, int64_t ranks = 8) {
  return {.memory_bytes = memory_bytes,
          .plan = {.ranks = ranks,
                   .accum = 2,
                   .bucket_bytes = 1000,
                   .weight_bytes = 2,
                   .segment_elements = {kElements}},
          .passes = {.batch = 8, .sequence_tokens = 8192},
          .knows_adapters = true,
          .memory_of = Memory};
}

TEST(FindFitTest, TellsWhatIsAskedForOfMemoryThatNobodyKnows) {
  const Fit fit = FindFit(Request(0));
  EXPECT_EQ(fit.verdict, FitVerdict::kUnknown);
  EXPECT_EQ(fit.needed_bytes, 18 * kElements + 8 * 8192 * kTokenBytes);
}

TEST(FindFitTest, WhatFitsExactlyFitsAndAByteLessDoesNot) {
  const int64_t needed = 18 * kElements + 8 * 8192 * kTokenBytes;
  EXPECT_EQ(FindFit(Request(needed)).verdict, FitVerdict::kFits);
  EXPECT_EQ(FindFit(Request(needed - 1)).verdict, FitVerdict::kFitsOtherwise);
}

TEST(FindFitTest, CountsTheHostsPartsOnlyWhereTheyAreInTheSameMemory) {
  FitRequest request = Request(18 * kElements + 8 * 8192 * kTokenBytes);
  request.memory_of = [](const PassesChoice& passes) {
    MemoryParts parts = Memory(passes);
    parts.process = kUnit;
    return parts;
  };
  EXPECT_EQ(FindFit(request).verdict, FitVerdict::kFits);
  request.counts_host = true;
  EXPECT_EQ(FindFit(request).verdict, FitVerdict::kFitsOtherwise);
}

TEST(FindFitTest, AdvisesShardingBeforeRecomputationBeforeSmallerMicroBatches) {
  // Beside the sharded moments and masters: 6 bytes of 65.5 units, 66 units of passes.
  EXPECT_EQ(FindFit(Request(600 * kUnit)).nearest, "--zero 1");
  EXPECT_EQ(FindFit(Request(505 * kUnit)).nearest, "--zero 1 --checkpoint-activations full");
  EXPECT_EQ(FindFit(Request(495 * kUnit)).nearest,
            "--zero 1 --checkpoint-activations full --batch 1 --accum 16");
}

TEST(FindFitTest, AdvisesMoreRanksWhereTheStateIsTooMuchForThese) {
  // Whole: 2 bytes an element and its gradient, 4. Divided: 16, which is 131 units on 8 ranks and 33 on 32.
  const Fit fit = FindFit(Request(6 * kElements + 40 * kUnit));
  EXPECT_EQ(fit.verdict, FitVerdict::kNeedsMoreRanks);
  EXPECT_THAT(fit.nearest, HasSubstr("--world 32 "));
  EXPECT_THAT(fit.reason, HasSubstr("8 ranks"));
}

TEST(FindFitTest, NamesContextParallelismWhereASamplesPassesDoNotFit) {
  FitRequest request = Request(18 * kElements);
  request.passes.sequence_tokens = 16 << 20;  // 1678 units of passes, recomputed
  const Fit fit = FindFit(request);
  EXPECT_EQ(fit.verdict, FitVerdict::kNeedsContextParallel);
  EXPECT_THAT(fit.reason, HasSubstr("context parallelism"));
  EXPECT_THAT(fit.nearest, HasSubstr("--seq 4194304"));
}

TEST(FindFitTest, WhereTextsHaveLengthsOfTheirOwnNamesTheirOptions) {
  FitRequest request = Request(18 * kElements);
  request.passes.sequence_tokens = 16 << 20;
  request.length_flags = "--query-max-len and --passage-max-len";
  const Fit fit = FindFit(request);
  EXPECT_THAT(fit.nearest,
              HasSubstr("texts of at most 4194304 tokens (--query-max-len and --passage-max-len)"));
  EXPECT_EQ(fit.nearest.find("--seq"), std::string::npos);
}

TEST(FindFitTest, VectorsOfAStepGrowWithTheRanks) {
  FitRequest request = Request(0);
  request.vectors_of = [](int64_t ranks, const PassesChoice& passes) { return ranks * passes.batch * kUnit; };
  EXPECT_EQ(FindFit(request).needed_bytes, FindFit(Request(0)).needed_bytes + 8 * 8 * kUnit);
}

TEST(FindFitTest, NamesTensorAndPipelineParallelismWhereTheWeightsDoNotFit) {
  const Fit fit = FindFit(Request(100 * kUnit));
  EXPECT_EQ(fit.verdict, FitVerdict::kNeedsModelParallel);
  EXPECT_THAT(fit.reason, HasSubstr("12.21 GiB of weights whole"));  // 2 bytes of each element
  EXPECT_THAT(fit.reason, HasSubstr("tensor or pipeline parallelism"));
  EXPECT_THAT(fit.nearest, HasSubstr("--lora 16 --quant nf4"));
  FitRequest without = Request(100 * kUnit);
  without.knows_adapters = false;
  EXPECT_EQ(FindFit(without).nearest.find("--lora"), std::string::npos);
}

TEST(FindFitTest, MoreRanksThanHaveABlockOfABucketAreNoWayOut) {
  // Of 1000 blocks each of 512 ranks keeps two, and exchanges with 511 others.
  FitRequest request = Request(0);
  request.plan.segment_elements = {1000 * kReductionBlock};
  request.memory_of = [](const PassesChoice&) {
    return MemoryParts{.optimizer = 16 * 1000 * kReductionBlock};
  };
  request.plan.sharding = Sharding::kOptimizer;
  const auto needed = [&](int64_t ranks) {
    request.plan.ranks = ranks;
    return FindFit(request).needed_bytes;
  };
  ASSERT_LT(needed(16), needed(8));
  ASSERT_GT(needed(512), needed(16));
  request.memory_bytes = needed(16);
  request.plan.ranks = 8;
  EXPECT_EQ(FindFit(request).verdict, FitVerdict::kNeedsMoreRanks);
  EXPECT_THAT(FindFit(request).nearest, HasSubstr("--world 16"));
}

TEST(FindFitTest, TellsMemoryOnceForEachChoiceOfPasses) {
  std::map<std::tuple<int64_t, int64_t, int, bool>, int> calls;
  FitRequest request = Request(100 * kUnit);
  request.memory_of = [&](const PassesChoice& passes) {
    ++calls[{passes.batch, passes.sequence_tokens, static_cast<int>(passes.checkpointing), passes.adapters}];
    return Memory(passes);
  };
  FindFit(request);
  for (const auto& [choice, count] : calls) EXPECT_EQ(count, 1);
}

TEST(FindFitTest, WhatItAdvisesFits) {
  for (int64_t memory_bytes = 400 * kUnit; memory_bytes < 1300 * kUnit; memory_bytes += 50 * kUnit) {
    const FitRequest request = Request(memory_bytes);
    const Fit fit = FindFit(request);
    if (fit.verdict != FitVerdict::kFitsOtherwise) continue;
    FitRequest advised = request;
    advised.plan.sharding = fit.nearest.find("--zero 2") != std::string::npos   ? Sharding::kGradients
                            : fit.nearest.find("--zero 1") != std::string::npos ? Sharding::kOptimizer
                                                                                : Sharding::kNone;
    advised.plan.accumulation = ZeroAccumulation::kReduce;
    if (fit.nearest.find("full") != std::string::npos) {
      advised.passes.checkpointing = ActivationCheckpointing::kFull;
    }
    if (fit.nearest.find("--batch 1 ") != std::string::npos) advised.passes.batch = 1;
    EXPECT_EQ(FindFit(advised).verdict, FitVerdict::kFits) << memory_bytes << " " << fit.nearest;
  }
}

}  // namespace
}  // namespace trainwright
