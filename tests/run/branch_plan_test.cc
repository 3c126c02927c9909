// The plan of a run that begins with another's checkpoint.
#include "lib/run/branch_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "lib/run/branch_reference.h"
#include "lib/run/plan_codec.h"
#include "lib/run/run_planner.h"
#include "lib/spec/built_in_families.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/lora_options.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/schedule.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

PlanFacts Facts() {
  PlanFacts facts;
  facts.model.family = &LlamaFamily();
  facts.model.hidden_size = 250;
  facts.model.max_positions = 512;
  facts.count_epoch = [](const TrainPlan&) {
    return EpochCounts{.samples = 80, .tokens = 8000, .labels = 1};
  };
  return facts;
}

TrainPlan Parent() {
  TrainPlan plan;
  plan.batch = 8;
  plan.sequence_tokens = 64;
  plan.schedule = {.kind = ScheduleKind::kCosine, .peak_lr = 1e-3, .warmup_steps = 5, .total_steps = 40};
  plan.length_rule = "steps 40";
  return plan;
}

TEST(PlanBranch, IsTheParentsPlanWhereNothingIsAskedFor) {
  const PlannedRun planned = PlanBranch({}, Facts(), 20, Parent());
  EXPECT_EQ(EncodePlan(planned.plan), EncodePlan(Parent()));
}

TEST(PlanBranch, TakesWhatIsAskedFor) {
  TrainSettings settings;
  settings.lr = 5e-4;
  settings.epochs = 6;
  settings.seed = 3;
  settings.batch = 4;
  settings.seq = 128;
  const TrainPlan plan = PlanBranch(settings, Facts(), 20, Parent()).plan;
  EXPECT_EQ(plan.schedule.peak_lr, 5e-4);
  EXPECT_EQ(plan.schedule.total_steps, 120);
  EXPECT_EQ(plan.seed, 3u);
  EXPECT_EQ(plan.batch, 4);
  EXPECT_EQ(plan.sequence_tokens, 128);
  EXPECT_EQ(plan.schedule.warmup_steps, 5);
}

TEST(PlanBranch, OnOtherRanksHasTheParentsStepUnlessAccumIsAskedFor) {
  TrainPlan parent = Parent();
  parent.accum = 6;
  parent.ranks = 2;
  PlanFacts facts = Facts();
  facts.ranks = 4;
  EXPECT_EQ(PlanBranch({}, facts, 20, parent).plan.accum, 3);
  EXPECT_EQ(PlanBranch({}, facts, 20, parent).plan.samples_per_step(), parent.samples_per_step());
  TrainSettings settings;
  settings.accum = 5;
  EXPECT_EQ(PlanBranch(settings, facts, 20, parent).plan.samples_per_step(), 8 * 5 * 4);
  facts.ranks = 5;
  EXPECT_EQ(test::CodeOf([&] { PlanBranch({}, facts, 20, parent); }), ErrorCode::kUsage);
}

TEST(PlanBranch, AnotherScheduleGetsItsDefaultsAndTheParentsRate) {
  TrainSettings settings;
  settings.schedule = "wsd";
  const ScheduleOptions schedule = PlanBranch(settings, Facts(), 20, Parent()).plan.schedule;
  EXPECT_EQ(schedule.kind, ScheduleKind::kWsd);
  EXPECT_EQ(schedule.decay_steps, 8);
  EXPECT_EQ(schedule.peak_lr, 1e-3);
}

TEST(PlanBranch, AnotherScheduleKeepsTheWarmupThatWasAskedFor) {
  TrainSettings settings;
  settings.schedule = "wsd";
  TrainPlan parent = Parent();
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.warmup_steps, 5);
  parent.shares.warmup_ratio = 0.125;
  const TrainPlan share = PlanBranch(settings, Facts(), 20, parent).plan;
  EXPECT_EQ(share.shares.warmup_ratio, 0.125);
  EXPECT_EQ(share.schedule.warmup_steps, 5);
  settings.warmup = 3;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.warmup_steps, 3);
  settings.warmup.reset();
  parent.shares = {.usual_warmup = true};
  const TrainPlan usual = PlanBranch(settings, Facts(), 20, parent).plan;
  EXPECT_TRUE(usual.shares.usual_warmup);
  EXPECT_EQ(usual.schedule.warmup_steps, 2) << "a twentieth of the run";
}

TEST(PlanBranch, AnotherScheduleKeepsTheLastRateThatWasAskedFor) {
  TrainPlan parent = Parent();
  parent.schedule.final_lr_ratio = 0.25;
  TrainSettings settings;
  for (const char* schedule : {"wsd", "linear"}) {
    settings.schedule = schedule;
    EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.final_lr_ratio, 0.25) << schedule;
  }
  settings.min_lr_ratio = 0.5;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.final_lr_ratio, 0.5);
}

TEST(PlanBranch, AnotherScheduleSaysWhatTheLastRateBecomesThatNobodyAskedFor) {
  TrainSettings settings;
  settings.schedule = "wsd";
  const PlannedRun planned = PlanBranch(settings, Facts(), 20, Parent());
  EXPECT_EQ(planned.plan.schedule.final_lr_ratio, 0);
  std::set<std::string> lines;
  for (const ChoiceReason& reason : planned.reasons) lines.insert(reason.line());
  EXPECT_TRUE(lines.contains(
      "last learning rate 0.0 of the peak: what wsd has by default; the parent's 0.1 is cosine's"));
}

TEST(PlanBranch, RefusesAParentsWarmupThatAnotherScheduleHasNoRoomFor) {
  TrainPlan parent = Parent();
  parent.schedule.warmup_steps = 50;
  TrainSettings settings;
  settings.schedule = "one-cycle";
  EXPECT_EQ(test::MessageOf([&] { PlanBranch(settings, Facts(), 20, parent); }),
            "--warmup: 50 steps: must lie in [0, 40], the run's length, with this --schedule | they are the "
            "parent's: give other ones");
  settings.warmup = 5;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.warmup_steps, 5);
}

TEST(PlanBranch, SharesOfTheRunAreThoseOfTheBranch) {
  TrainPlan parent = Parent();
  parent.shares = {.warmup_ratio = 0.1};
  parent.schedule.warmup_steps = 4;
  TrainSettings settings;
  settings.steps = 80;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.warmup_steps, 8);
  settings.warmup = 5;
  const TrainPlan asked = PlanBranch(settings, Facts(), 20, parent).plan;
  EXPECT_EQ(asked.schedule.warmup_steps, 5);
  EXPECT_FALSE(asked.shares.warmup_ratio) << "a longer branch keeps what was asked for";
  settings.warmup.reset();
  parent.shares = {.usual_warmup = true, .usual_decay = true};
  parent.schedule.kind = ScheduleKind::kWsd;
  parent.schedule.decay_steps = 8;
  const ScheduleOptions wsd = PlanBranch(settings, Facts(), 20, parent).plan.schedule;
  EXPECT_EQ(wsd.warmup_steps, 4);
  EXPECT_EQ(wsd.decay_steps, 16);
}

/// A parent of another schedule, as a run of 40 steps plans it.
TrainPlan ParentOf(const std::string& schedule, bool cycle_momentum = false) {
  TrainSettings settings;
  settings.batch = 8;
  settings.seq = 64;
  settings.steps = 40;
  settings.schedule = schedule;
  settings.cycle_momentum = cycle_momentum;
  return PlanRun(settings, Facts()).plan;
}

/// What a branch refuses: what a new run of that schedule does, in the same words.
void ExpectRefusedAsInANewRun(TrainSettings settings, const TrainPlan& parent) {
  const std::string branch = test::MessageOf([&] { PlanBranch(settings, Facts(), 20, parent); });
  settings.schedule = ScheduleKindName(parent.schedule.kind);
  settings.cycle_momentum |= parent.schedule.cycle_beta1;
  settings.steps = settings.steps.value_or(40);
  settings.seq = 64;
  const std::string anew = test::MessageOf([&] { PlanRun(settings, Facts()); });
  EXPECT_NE(anew, "");
  EXPECT_EQ(branch, anew);
}

TEST(PlanBranch, RefusesDecaysAndWarmupsThatDoNotFitAsANewRunDoes) {
  for (const int64_t decay : {500, 39, 0, -5}) {
    SCOPED_TRACE(decay);
    TrainSettings settings;
    settings.decay_steps = decay;
    ExpectRefusedAsInANewRun(settings, ParentOf("wsd"));
  }
  for (const char* schedule : {"wsd", "one-cycle"}) {
    SCOPED_TRACE(schedule);
    TrainSettings settings;
    settings.warmup = 500;
    settings.decay_steps = schedule == std::string("wsd") ? std::optional<int64_t>(1) : std::nullopt;
    ExpectRefusedAsInANewRun(settings, ParentOf(schedule));
  }
  TrainSettings all;
  all.warmup_ratio = 1;
  ExpectRefusedAsInANewRun(all, ParentOf("wsd"));
}

TEST(PlanBranch, RefusesOptionsWithoutAMeaningAsANewRunDoes) {
  TrainSettings decay, cycle, beta1, least, both;
  decay.decay_steps = 5;
  ExpectRefusedAsInANewRun(decay, ParentOf("cosine"));
  cycle.cycle_momentum = true;
  ExpectRefusedAsInANewRun(cycle, ParentOf("cosine"));
  beta1.beta1 = 0.5;
  ExpectRefusedAsInANewRun(beta1, ParentOf("one-cycle", /*cycle_momentum=*/true));
  least.min_lr_ratio = 0.5;
  ExpectRefusedAsInANewRun(least, ParentOf("one-cycle"));
  both.warmup = 3;
  both.warmup_ratio = 0.5;
  ExpectRefusedAsInANewRun(both, ParentOf("cosine"));
}

TEST(PlanBranch, RefusesAParentsDecayThatIsLongerThanAShorterBranch) {
  TrainPlan parent = ParentOf("wsd");
  parent.shares.usual_decay = false;
  parent.schedule.decay_steps = 35;
  TrainSettings settings;
  settings.steps = 30;
  EXPECT_EQ(test::MessageOf([&] { PlanBranch(settings, Facts(), 20, parent); }),
            "--decay-steps: 35 steps: must lie in [1, 29], the steps after warm-up | they are the parent's: "
            "give other ones");
  settings.decay_steps = 6;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, parent).plan.schedule.decay_steps, 6);
}

TEST(PlanBranch, AnotherWarmupLeavesTheUsualDecayTheStepsAfterIt) {
  TrainSettings settings;
  settings.warmup = 37;
  EXPECT_EQ(PlanBranch(settings, Facts(), 20, ParentOf("wsd")).plan.schedule.decay_steps, 3);
}

TEST(PlanBranch, AnotherScheduleThanOneCycleDoesNotCycleTheMomentum) {
  TrainSettings settings;
  settings.schedule = "cosine";
  const TrainPlan parent = ParentOf("one-cycle", /*cycle_momentum=*/true);
  EXPECT_FALSE(PlanBranch(settings, Facts(), 20, parent).plan.schedule.cycle_beta1);
}

TEST(PlanBranch, RefusesWhatTheCheckpointIsMadeOf) {
  const auto code = [](auto set) {
    TrainSettings settings;
    set(settings);
    return test::CodeOf([&] { PlanBranch(settings, Facts(), 20, Parent()); });
  };
  EXPECT_EQ(code([](TrainSettings& s) { s.lora = 4; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.optimizer_states = "bf16"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.optimizer = "other"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.objective = "sft"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.seq = 513; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.steps = 20; }), ErrorCode::kUsage) << "no step is left";
  EXPECT_EQ(code([](TrainSettings& s) { s.lr = -1; }), ErrorCode::kUsage);
}

/// Of a parent that embeds texts.
std::string MessageOfOwnOption(const std::string& asked) {
  TrainPlan parent = Parent();
  parent.objective = kGritObjective;
  parent.objective_own = {{"projection", 16}, {"pooling", "cls"}, {"mode", "embedding"}};
  CompleteStoredPlan(BuiltInChoices(), &parent);
  PlanFacts facts = Facts();
  facts.records = {RecordKind::kContrastive};
  TrainSettings settings;
  settings.objective_options = {asked};
  return test::MessageOf([&] { PlanBranch(settings, facts, 20, parent); });
}

TEST(PlanBranch, TakesTheModulesOfTheParentsAdaptersInOtherWords) {
  PlanFacts facts = Facts();
  facts.model = BuiltInDescriptions().PresetConfig("llama-1m", 300);
  TrainPlan parent = Parent();
  parent.tuning.lora = LoraOptions{.rank = 4, .alpha = 8};
  TrainSettings settings;
  settings.lora_targets = "attention,mlp";
  EXPECT_EQ(PlanBranch(settings, facts, 20, parent).plan.tuning.lora->targets, "all-linear");
}

TEST(PlanBranch, RefusesOwnOptionsThatSayWhatTheModelIs) {
  const std::string hint = ", or start from the weights alone with --init";
  EXPECT_EQ(MessageOfOwnOption("projection=8"),
            "--projection: 8 differs from the parent's 16, which its checkpoint is made of | leave out "
            "--projection" +
                hint);
  EXPECT_EQ(MessageOfOwnOption("pooling=mean"),
            "--pooling: mean differs from the parent's cls, which its checkpoint is made of | leave out "
            "--pooling" +
                hint);
  EXPECT_NE(MessageOfOwnOption("mode=unified"), "");
  EXPECT_NE(MessageOfOwnOption("attn=cccc"), "");
  EXPECT_NE(MessageOfOwnOption("normalize=off"), "");
}

TEST(PlanBranch, TakesOwnOptionsOfTheTrainingAlone) {
  EXPECT_EQ(MessageOfOwnOption("temperature=0.05"), "");
  EXPECT_EQ(MessageOfOwnOption("projection=16"), "") << "the parent's";
}

TEST(ParseBranchReference, TellsARunFromAStepOfIt) {
  EXPECT_EQ(ParseBranchReference("runs/a").run, "runs/a");
  EXPECT_FALSE(ParseBranchReference("runs/a").step);
  EXPECT_EQ(ParseBranchReference("runs/a@120").run, "runs/a");
  EXPECT_EQ(ParseBranchReference("runs/a@120").step, 120);
  EXPECT_EQ(ParseBranchReference("a@b").run, "a@b");
  EXPECT_EQ(ParseBranchReference("a@b@7").run, "a@b");
  EXPECT_EQ(ParseBranchReference("a@").run, "a@");
  EXPECT_EQ(test::CodeOf([] { ParseBranchReference("a@99999999999999999999"); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright
