// A run that is made longer.
#include "lib/run/run_extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_planner.h"
#include "lib/spec/llama_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

/// 80 samples an epoch, 8 a step.
EpochCounts Epoch(const TrainPlan& /*plan*/) {
  return {.samples = 80, .tokens = 8000, .labels = 7900};
}

TrainPlan PlanOf(ScheduleKind kind) {
  TrainPlan plan;
  plan.batch = 8;
  plan.schedule = {.kind = kind, .warmup_steps = 5, .decay_steps = 10, .total_steps = 40};
  plan.length_rule = "steps 40";
  return plan;
}

TEST(ExtendRun, ChangesNothingWhereNoOtherLengthIsAskedFor) {
  TrainSettings settings;
  TrainPlan plan = PlanOf(ScheduleKind::kCosine);
  const auto uncounted = [](const TrainPlan&) -> EpochCounts { throw std::logic_error("counted"); };
  EXPECT_TRUE(ExtendRun(settings, uncounted, 20, &plan).empty());
  settings.steps = 40;
  EXPECT_TRUE(ExtendRun(settings, uncounted, 20, &plan).empty());
  EXPECT_EQ(plan.schedule.total_steps, 40);
}

TEST(ExtendRun, TakesStepsEpochsAndTokens) {
  TrainSettings steps, epochs, tokens;
  steps.steps = 50;
  epochs.epochs = 5;
  tokens.tokens = 40001;
  for (const auto& [settings, expected] :
       {std::pair{steps, 50}, std::pair{epochs, 50}, std::pair{tokens, 51}}) {
    TrainPlan plan = PlanOf(ScheduleKind::kConstant);
    ExtendRun(settings, Epoch, 20, &plan);
    EXPECT_EQ(plan.schedule.total_steps, expected);
    EXPECT_NO_THROW(ReconcilePlan(settings, &plan)) << "what was taken over is the plan's";
  }
}

TEST(ExtendRun, SchedulesThatEndWithTheRunNeedLeave) {
  TrainSettings settings;
  settings.steps = 80;
  for (const ScheduleKind kind : {ScheduleKind::kCosine, ScheduleKind::kLinear, ScheduleKind::kOneCycle}) {
    TrainPlan plan = PlanOf(kind);
    settings.replan_schedule = false;
    EXPECT_EQ(test::CodeOf([&] { ExtendRun(settings, Epoch, 20, &plan); }), ErrorCode::kUsage);
    EXPECT_EQ(plan.schedule.total_steps, 40);
    settings.replan_schedule = true;
    ExtendRun(settings, Epoch, 20, &plan);
    EXPECT_EQ(plan.schedule.total_steps, 80);
  }
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kWsd}) {
    TrainPlan plan = PlanOf(kind);
    settings.replan_schedule = false;
    ExtendRun(settings, Epoch, 20, &plan);
    EXPECT_EQ(plan.schedule.total_steps, 80);
    EXPECT_EQ(plan.schedule.decay_steps, 10);
  }
}

TEST(ExtendRun, IsRefusedWhereTheRunWouldBecomeShorter) {
  TrainSettings settings;
  settings.steps = 39;
  settings.replan_schedule = true;
  TrainPlan plan = PlanOf(ScheduleKind::kConstant);
  EXPECT_EQ(test::CodeOf([&] { ExtendRun(settings, Epoch, 20, &plan); }), ErrorCode::kUsage);
}

using Ask = std::function<void(TrainSettings&)>;

/// As a new run of that many steps is planned, stored and read.
TrainPlan PlanOf(const std::string& schedule, int64_t steps, const Ask& ask) {
  TrainSettings settings;
  settings.schedule = schedule;
  settings.steps = steps;
  ask(settings);
  PlanFacts facts;
  facts.model.family = &LlamaFamily();
  facts.model.hidden_size = 250;
  facts.model.max_positions = 512;
  facts.count_epoch = Epoch;
  return DecodePlan(nlohmann::json::parse(EncodePlan(PlanRun(settings, facts).plan).dump()), "x");
}

/// Of a run that is made longer.
TrainPlan Longer(TrainPlan plan, int64_t steps_taken, int64_t steps, bool replan) {
  TrainSettings settings;
  settings.steps = steps;
  settings.replan_schedule = replan;
  ExtendRun(settings, Epoch, steps_taken, &plan);
  return plan;
}

TEST(ExtendRun, ReplannedHasTheLearningRatesOfTheLongerRunFromTheResumptionOn) {
  for (const char* schedule : {"cosine", "linear", "constant", "wsd", "one-cycle"}) {
    for (const Ask& ask : {Ask([](TrainSettings&) {}), Ask([](TrainSettings& s) { s.warmup_ratio = 0.13; }),
                           Ask([](TrainSettings& s) { s.warmup = 7; })}) {
      const std::tuple<int64_t, int64_t, int64_t> lengths[] = {{40, 0, 80},  {40, 1, 93},  {40, 30, 80},
                                                               {40, 40, 41}, {19, 19, 45}, {1, 1, 3000}};
      for (const auto& [before, taken, after] : lengths) {
        TrainPlan longer;
        try {
          longer = Longer(PlanOf(schedule, before, ask), taken, after, /*replan=*/true);
        } catch (const Error& error) {
          ASSERT_EQ(before, 1) << "whose one step leaves no room for what is asked: " << error.what();
          continue;
        }
        const TrainPlan whole = PlanOf(schedule, after, ask);
        EXPECT_EQ(EncodePlan(longer).dump(), EncodePlan(whole).dump()) << "the plan of the longer run";
        for (int64_t step = taken; step < after; ++step) {
          ASSERT_EQ(LearningRate(longer.schedule, step), LearningRate(whole.schedule, step))
              << schedule << " " << before << " -> " << after << " step " << step;
        }
      }
    }
  }
}

TEST(ExtendRun, ReplannedTwiceIsTheLongestRun) {
  const Ask ask = [](TrainSettings& s) { s.warmup_ratio = 0.1; };
  const TrainPlan twice = Longer(Longer(PlanOf("cosine", 40, ask), 10, 60, true), 20, 80, true);
  EXPECT_EQ(EncodePlan(twice).dump(), EncodePlan(PlanOf("cosine", 80, ask)).dump());
}

TEST(ExtendRun, TheDefaultDecayIsAFifthOfTheLongerRunAndNoStepThatWasTakenIsAnother) {
  const Ask nothing = [](TrainSettings&) {};
  for (int64_t taken : {0, 1, 20, 32}) {
    const TrainPlan shorter = PlanOf("wsd", 40, nothing), longer = Longer(shorter, taken, 80, false);
    EXPECT_EQ(longer.schedule.decay_steps, 16);
    for (int64_t step = 0; step < taken; ++step) {
      EXPECT_EQ(LearningRate(longer.schedule, step), LearningRate(shorter.schedule, step));
    }
  }
  EXPECT_EQ(Longer(PlanOf("wsd", 19, nothing), 19, 45, false).schedule.decay_steps, 9);
  EXPECT_EQ(Longer(PlanOf("wsd", 100, nothing), 99, 105, false).schedule.decay_steps, 20)
      << "a decay that the run is in keeps its length";
  EXPECT_EQ(Longer(PlanOf("wsd", 40, [](TrainSettings& s) { s.decay_steps = 5; }), 9, 80, false)
                .schedule.decay_steps,
            5);
}

TEST(ExtendRun, AWarmUpStaysWhereTheScheduleIsNotReplannedAndTheFlagMayBeRepeated) {
  const Ask ask = [](TrainSettings& s) { s.warmup_ratio = 0.1; };
  TrainPlan longer = Longer(PlanOf("constant", 40, ask), 2, 80, false);
  EXPECT_EQ(longer.schedule.warmup_steps, 4);
  EXPECT_EQ(PlanAsOptions(longer).value("warmup", 0), 4) << "the options that make the same plan";
  TrainSettings again;
  ask(again);
  EXPECT_TRUE(ReconcilePlan(again, &longer).empty());
}

TEST(ExtendRun, ARunRemembersItsWarmUpAsItWasGiven) {
  const auto told = [](const TrainPlan& plan) {
    const nlohmann::ordered_json options = PlanAsOptions(plan);
    return std::pair(options.value("warmup", -1), options.value("warmup-ratio", -1.0));
  };
  const Ask ratio = [](TrainSettings& s) { s.warmup_ratio = 0.1; };
  const Ask steps = [](TrainSettings& s) { s.warmup = 3; };
  EXPECT_EQ(told(PlanOf("cosine", 40, ratio)), std::pair(-1, 0.1));
  EXPECT_EQ(told(Longer(PlanOf("cosine", 40, ratio), 9, 80, true)), std::pair(-1, 0.1));
  EXPECT_EQ(told(PlanOf("cosine", 40, steps)), std::pair(3, -1.0));
}

TEST(ExtendRun, AStateThatDoesNotSayWhatWasAShareKeepsItsLengths) {
  nlohmann::json old = nlohmann::json::parse(EncodePlan(PlanOf("wsd", 40, [](TrainSettings&) {})).dump());
  for (const char* name : {"warmup_ratio", "usual_warmup", "usual_decay"}) old.erase(name);
  for (const bool replan : {false, true}) {
    const ScheduleOptions schedule = Longer(DecodePlan(old, "x"), 20, 80, replan).schedule;
    EXPECT_EQ(schedule.warmup_steps, 2);
    EXPECT_EQ(schedule.decay_steps, 8);
  }
}

TEST(ExtendRun, TellsWhereTheLearningRateJumps) {
  TrainSettings settings;
  settings.steps = 80;
  TrainPlan stable = PlanOf(ScheduleKind::kWsd), decaying = stable;
  EXPECT_THAT(ExtendRun(settings, Epoch, 20, &stable), testing::ElementsAre(testing::Not(HasSubstr("rate"))));
  EXPECT_THAT(ExtendRun(settings, Epoch, 38, &decaying), testing::ElementsAre(HasSubstr("learning rate")));
}

}  // namespace
}  // namespace trainwright
