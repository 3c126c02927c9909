#include "lib/memory/memory_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "lib/spec/built_in_objectives.h"
#include "tests/model/families.h"
#include "tests/model/small_models.h"

namespace trainwright {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

MemoryRequest SmallRequest() {
  return {.model = test::Families().descriptions().PresetConfig("llama-1m", 96),
          .optimizers = BuiltInOptimizers()};
}

TEST(MemoryAdviceTest, BeginsWithWhatTakesMost) {
  const MemoryParts memory = {.parameters = 10, .activations = 1000, .snapshot = 100};
  const std::string advice = MemoryAdvice(test::Families(), memory, SmallRequest(), /*auto_oom=*/false);
  EXPECT_THAT(advice, StartsWith("activations, 1000 B: --auto-oom, --checkpoint-activations full"));
  EXPECT_LT(advice.find("the copy for checkpoints"), advice.find("weights with gradients and moments"));
  EXPECT_THAT(advice, HasSubstr("the largest model.layers."));
}

TEST(MemoryAdviceTest, OfAGpt2WhoseActivationsAreLargestBeginsWithThem) {
  const MemoryRequest request = {.model = test::SmallGpt2(), .optimizers = BuiltInOptimizers()};
  const MemoryParts memory = TrainingMemory(test::Families(), request, EqualSamples(64, 128));
  EXPECT_THAT(MemoryAdvice(test::Families(), memory, request, /*auto_oom=*/false),
              StartsWith("activations, "));
}

TEST(MemoryAdviceTest, LeavesOutWhatIsTakenAlready) {
  const MemoryParts memory = {.gradients = 10, .optimizer = 10, .activations = 10};
  MemoryRequest request = SmallRequest();
  request.checkpointing = ActivationCheckpointing::kFull;
  request.offload = {.activations = true, .gradients = true};
  request.optimizer.states = OptimizerStates::kBf16;
  const std::string advice = MemoryAdvice(test::Families(), memory, request, /*auto_oom=*/true);
  for (const char* taken : {"--auto-oom", "--checkpoint-activations", "--offload", "--optimizer-states"}) {
    EXPECT_THAT(advice, Not(HasSubstr(taken)));
  }
  EXPECT_THAT(advice, HasSubstr("a lower --batch"));
}

/// What is advised of a run of grit with these options.
std::string GritAdvice(const OwnOptions& said) {
  const ObjectiveDescription grit = GritDescription();
  MemoryRequest request = SmallRequest();
  request.objective_levers =
      grit.memory_levers(WithDescribed(said, grit.own, ErrorCode::kUsage, "the objective grit"));
  const MemoryParts memory = {.activations = 1000, .representations = 100};
  return MemoryAdvice(test::Families(), memory, request, /*auto_oom=*/true);
}

TEST(MemoryAdviceTest, OfTextsToEmbedNamesWhatMakesTheirPassesSmaller) {
  const std::string advice = GritAdvice({{"no_emb_gas", "on"}});
  for (const char* lever :
       {"--no-emb-gas off", "--split-emb full", "a lower --batch (raising --accum as much)",
        "--passage-max-len", "--tile-mb", "--negatives rank"}) {
    EXPECT_THAT(advice, HasSubstr(lever));
  }
  EXPECT_LT(advice.find("a lower --batch"), advice.find("a lower --accum")) << "which changes the loss";
  EXPECT_THAT(advice, Not(HasSubstr("--seq")));
}

TEST(MemoryAdviceTest, OfTextsToEmbedLeavesOutWhatIsTakenAlready) {
  const std::string advice = GritAdvice({{"split_emb", "full"}, {"negatives", "rank"}});
  for (const char* taken : {"--no-emb-gas", "--no-gen-gas", "--split-emb", "--negatives", "--seq"}) {
    EXPECT_THAT(advice, Not(HasSubstr(taken)));
  }
}

TEST(MemoryAdviceTest, OfOtherObjectivesNamesNoOptionOfGrit) {
  const MemoryParts memory = {.activations = 1000, .representations = 100};
  const std::string advice = MemoryAdvice(test::Families(), memory, SmallRequest(), /*auto_oom=*/true);
  EXPECT_THAT(advice, HasSubstr("a lower --seq"));
  for (const char* lever : {"--split-emb", "--passage-max-len", "--tile-mb", "-gas"}) {
    EXPECT_THAT(advice, Not(HasSubstr(lever)));
  }
}

TEST(MemoryPartsTest, HaveNamesAndSizesOfTheirOwn) {
  std::set<std::string> names;
  MemoryParts memory;
  int64_t size = 1;
  for (const MemoryPart& part : AllMemoryParts()) {
    names.insert(part.name);
    memory.*part.size_bytes = size;
    size *= 2;
  }
  EXPECT_EQ(names.size(), AllMemoryParts().size());
  EXPECT_EQ(memory.total(), size - 1);
  const nlohmann::ordered_json groups = EncodeMemory(memory, 7);
  int64_t sum = 0;
  for (const char* group :
       {"params", "grads", "optimizer", "activations", "loader", "snapshot", "runtime", "heap"}) {
    sum += groups.at(group).get<int64_t>();
  }
  EXPECT_EQ(sum, memory.total());
}

TEST(MemoryPartsTest, WhatTheHeapKeepsIsToldWithinThePeak) {
  const MemoryParts others = {.parameters = 30, .activations = 20, .process = 40};
  const struct {
    int64_t free_bytes, peak_bytes, expected;
  } cases[] = {{7, 100, 7}, {10, 100, 10}, {25, 100, 10}, {25, 90, 0}, {25, 80, 0}, {0, 100, 0}};
  for (const auto& [free_bytes, peak_bytes, expected] : cases) {
    EXPECT_EQ(ResidentFreeHeap(others, free_bytes, peak_bytes), expected)
        << free_bytes << " free, peak " << peak_bytes;
  }
}

}  // namespace
}  // namespace trainwright
