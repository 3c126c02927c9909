// A run that is made longer.
#include "lib/run/run_extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lib/run/resumed_plan.h"
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

TEST(ExtendRun, TellsWhereTheLearningRateJumps) {
  TrainSettings settings;
  settings.steps = 80;
  TrainPlan stable = PlanOf(ScheduleKind::kWsd), decaying = stable;
  EXPECT_THAT(ExtendRun(settings, Epoch, 20, &stable), testing::ElementsAre(testing::Not(HasSubstr("rate"))));
  EXPECT_THAT(ExtendRun(settings, Epoch, 38, &decaying), testing::ElementsAre(HasSubstr("learning rate")));
}

}  // namespace
}  // namespace trainwright
