#include "lib/run/branch_plan.h"

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/schedule_planner.h"

namespace trainwright {
namespace {

/// \throws Error{kUsage} on what the checkpoint's weights and states are made of
void RefuseOtherState(const TrainSettings& settings, const TrainPlan& parent) {
  for (const PlanOption& option : TrainPlanTable()) {
    if (!option.fixed_in_branch) continue;
    const std::optional<PlanDifference> difference = DifferenceOf(option, settings, parent);
    if (!difference) continue;
    throw Error(ErrorCode::kUsage, "--" + difference->option,
                difference->asked + " differs from the parent's " + difference->stored +
                    ", which its checkpoint is made of",
                "", "leave out --" + difference->option + ", or start from the weights alone with --init");
  }
}

}  // namespace

PlannedRun PlanBranch(const TrainSettings& settings, const PlanFacts& facts, int64_t steps_taken,
                      const TrainPlan& parent) {
  RefuseOtherState(settings, parent);
  PlannedRun planned{.plan = parent, .reasons = {}, .epoch = {}};
  TrainPlan& plan = planned.plan;
  if (settings.objective != "auto" && settings.objective != parent.objective) plan.objective_own.clear();
  TakeAsked(settings, TrainPlanTable(), &plan);
  if (!settings.accum) TakeRanks(facts.ranks, &plan);
  plan.ranks = facts.ranks;
  RequireLeaves(plan);
  TakeObjectiveNeeds(facts, &planned);
  CompleteAskedPlan(settings, TrainPlanTable(), facts.choices, &plan);
  if (const auto own = OwnSampleTokens(settings, facts.choices, plan, facts.model.max_positions)) {
    plan.sequence_tokens = own->longest_span;
  }
  if (!settings.objective_options.empty()) TakeOwnOfStep(facts.choices, &plan);
  RequireOwnOptions(settings, facts.choices, plan);
  RequirePositions(plan.sequence_tokens, facts.model.max_positions, "use a shorter --seq");
  if (settings.mixed_precision == "auto") plan.precision = ParsePrecision("auto", facts.fast_bf16);
  if (const std::string rule = LengthRule(settings); !rule.empty()) {
    plan.length_rule = rule;
    if (!settings.steps) {
      planned.epoch = facts.count_epoch(plan);
      plan.schedule.total_steps = StepsOf(settings, *planned.epoch, plan);
    }
  }
  if (plan.schedule.total_steps <= steps_taken) {
    throw Error(ErrorCode::kUsage, "--branch-from",
                "the checkpoint is at step " + std::to_string(steps_taken) + " of " +
                    std::to_string(plan.schedule.total_steps) + ", so no step is left to take",
                "", "give a greater --steps: a branch counts on from its parent's step");
  }
  if (!settings.schedule.empty() && plan.schedule.kind != parent.schedule.kind) {
    TrainSettings with_rate = settings;
    with_rate.lr = plan.schedule.peak_lr;
    PlanSchedule(with_rate, facts.model.hidden_size, &planned);
  } else if (settings.warmup_ratio) {
    plan.schedule.warmup_steps = WarmupSteps(*settings.warmup_ratio, plan.schedule.total_steps);
  }
  return planned;
}

}  // namespace trainwright
