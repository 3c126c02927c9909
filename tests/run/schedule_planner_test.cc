#include "lib/run/schedule_planner.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/spec/built_in_families.h"

namespace trainwright {
namespace {

/// Of 5 steps of a model of hidden size 128.
PlannedRun PlanOf(TrainSettings settings) {
  settings.steps = 5;
  return PlanRun(
      settings, {.model = BuiltInDescriptions().PresetConfig("llama-1m", 300), .records = {RecordKind::kLm}});
}

PlannedRun PlanOf(const char* optimizer) {
  TrainSettings settings;
  settings.optimizer = optimizer;
  return PlanOf(settings);
}

TEST(SchedulePlanner, TheDefaultRateFollowsTheOptimizer) {
  EXPECT_DOUBLE_EQ(PlanOf("adamw").plan.schedule.peak_lr, 3e-3);
  EXPECT_DOUBLE_EQ(PlanOf("adamw8bit").plan.schedule.peak_lr, 3e-3);
  EXPECT_DOUBLE_EQ(PlanOf("muon").plan.schedule.peak_lr, 3e-3);
  EXPECT_DOUBLE_EQ(PlanOf("lion").plan.schedule.peak_lr, 9e-4);
  EXPECT_DOUBLE_EQ(PlanOf("sgd").plan.schedule.peak_lr, 0.3);
}

TEST(SchedulePlanner, TheReasonOfTheRateNamesTheOptimizer) {
  std::set<std::string> lines;
  for (const ChoiceReason& reason : PlanOf("lion").reasons) lines.insert(reason.line());
  EXPECT_TRUE(
      lines.contains("learning rate 0.0009: 0.5 / hidden size 128, at most 0.003, times 0.3 for lion"));
}

TEST(SchedulePlanner, ARateThatIsAskedForIsLeftAlone) {
  TrainSettings settings;
  settings.optimizer = "lion";
  settings.lr = 0.01;
  EXPECT_EQ(PlanOf(settings).plan.schedule.peak_lr, 0.01);
}

}  // namespace
}  // namespace trainwright
