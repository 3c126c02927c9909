// What the family of a model says of a plan.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/run/run_planner.h"
#include "lib/spec/built_in_families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

/// Of 5 steps of a preset.
PlannedRun PlanOfPreset(const char* preset, const TrainSettings& asked,
                        const std::set<RecordKind>& records = {RecordKind::kLm}) {
  TrainSettings settings = asked;
  settings.steps = 5;
  return PlanRun(settings, {.model = BuiltInDescriptions().PresetConfig(preset, 300), .records = records});
}

PlannedRun GritOfPreset(const char* preset, const std::string& asked) {
  TrainSettings settings;
  if (!asked.empty()) settings.objective_options = {asked};
  return PlanOfPreset(preset, settings, {RecordKind::kContrastive});
}

TEST(FamilyPlan, GritIsCausalWhereAModelAlwaysIs) {
  const PlannedRun planned = GritOfPreset("ten-nano", "");
  EXPECT_EQ(planned.plan.objective_own.at("attn"), "cccc");
  std::set<std::string> lines;
  for (const ChoiceReason& reason : planned.reasons) lines.insert(reason.line());
  EXPECT_TRUE(lines.contains("attn cccc: the model is of the family ten"));
  EXPECT_EQ(GritOfPreset("ten-nano", "attn=cc").plan.objective_own.at("attn"), "cc");
  EXPECT_EQ(GritOfPreset("llama-1m", "").plan.objective_own.at("attn"), "bbcc");
}

TEST(FamilyPlan, BidirectionalAttentionIsRefusedByNameWhereAModelIsAlwaysCausal) {
  const auto plan = [] { GritOfPreset("ten-nano", "attn=bbcc"); };
  EXPECT_EQ(CodeOf(plan), ErrorCode::kUsage);
  EXPECT_EQ(MessageOf(plan),
            "--objective grit: --attn bbcc lets tokens see later ones, and ten is always causal: use --attn "
            "cccc | ");
  EXPECT_EQ(CodeOf([] { GritOfPreset("ten-nano", "attn=bb"); }), ErrorCode::kUsage);
  EXPECT_EQ(MessageOf([] { GritOfPreset("llama-1m", "attn=bb"); }), "");
}

TEST(FamilyPlan, ARecurrenceHasNoLongestSequence) {
  TrainSettings settings;
  settings.seq = 262144;
  EXPECT_EQ(PlanOfPreset("ten-micro", settings).plan.sequence_tokens, 262144);
  EXPECT_EQ(CodeOf([&] { PlanOfPreset("llama-1m", settings); }), ErrorCode::kUsage);
  EXPECT_EQ(PlanOfPreset("ten-nano", {}).plan.sequence_tokens, 512) << "what it is for, where nobody says it";
}

TEST(FamilyPlan, PiecesOfAMicroBatchAreForModelsThatCarryAState) {
  TrainSettings settings;
  settings.tbptt = 64;
  EXPECT_EQ(PlanOfPreset("ten-nano", settings).plan.tbptt, 64);
  const auto plan = [&] { PlanOfPreset("llama-1m", settings); };
  EXPECT_EQ(CodeOf(plan), ErrorCode::kUsage);
  EXPECT_EQ(
      MessageOf(plan),
      "--tbptt: needs a model that carries a state from token to token, which llama does not | leave it "
      "out, or take a model of the family ten; --checkpoint-activations saves memory, too");
  settings.tbptt = 0;
  EXPECT_EQ(PlanOfPreset("llama-1m", settings).plan.tbptt, 0);
  settings.tbptt = -1;
  EXPECT_EQ(CodeOf([&] { PlanOfPreset("ten-nano", settings); }), ErrorCode::kUsage);
}

TEST(FamilyPlan, AnObjectiveThatComparesWholeTextsTakesNoPieces) {
  TrainSettings settings;
  settings.tbptt = 64;
  const auto plan = [&] { PlanOfPreset("ten-nano", settings, {RecordKind::kContrastive}); };
  EXPECT_EQ(CodeOf(plan), ErrorCode::kUsage);
  EXPECT_EQ(MessageOf(plan), "--tbptt: has a meaning only with --objective lm or sft | ");
}

}  // namespace
}  // namespace trainwright
