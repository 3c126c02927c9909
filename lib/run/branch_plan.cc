#include "lib/run/branch_plan.h"

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/schedule_planner.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

Error OtherState(const std::string& flag, const std::string& asked, const std::string& stored) {
  return Error(ErrorCode::kUsage, flag,
               asked + " differs from the parent's " + stored + ", which its checkpoint is made of", "",
               "leave out " + flag + ", or start from the weights alone with --init");
}

/// \throws Error{kUsage} on what the checkpoint's weights and states are made of
void RefuseOtherState(const TrainSettings& settings, const TrainPlan& parent) {
  for (const PlanOption& option : TrainPlanTable()) {
    if (!option.fixed_in_branch) continue;
    const std::optional<PlanDifference> difference = DifferenceOf(option, settings, parent);
    if (difference) throw OtherState("--" + difference->option, difference->asked, difference->stored);
  }
}

/// The same of the options that only the parent's objective has.
/// \throws Error{kUsage}
void RefuseOtherModel(const TrainSettings& settings, const PlanChoices& choices, const TrainPlan& parent) {
  const ObjectiveDescription& objective = choices.Objective(parent.objective);
  for (const auto& [name, value] : AskedOwnOptions(settings)) {
    const OwnOption* option = FindOwnOption(objective.own, name);
    if (option == nullptr || !option->fixed_in_branch) continue;
    const auto found = parent.objective_own.find(name);
    const OwnValue& stored = found == parent.objective_own.end() ? option->initial : found->second;
    if (!IsSameOwnValue(value, stored)) {
      throw OtherState("--" + option->flag(), value.ToString(), stored.ToString());
    }
  }
}

}  // namespace

PlannedRun PlanBranch(const TrainSettings& settings, const PlanFacts& facts, int64_t steps_taken,
                      const TrainPlan& parent) {
  RefuseOtherState(InWordsOfPlan(settings, parent, facts.model), parent);
  RefuseOtherModel(settings, facts.choices, parent);
  PlannedRun planned{.plan = parent, .reasons = {}, .epoch = {}};
  TrainPlan& plan = planned.plan;
  TakeAsked(settings, TrainPlanTable(), &plan);
  if (!settings.accum) TakeRanks(facts.ranks, &plan);
  plan.ranks = facts.ranks;
  RequireStepThatFits(plan);
  RequireLeaves(plan);
  TakeObjectiveNeeds(facts, &planned);
  CompleteAskedPlan(settings, TrainPlanTable(), facts.choices, &plan);
  const int64_t longest = FamilyOf(facts.model).LongestSequence(facts.model);
  if (const auto own = OwnSampleTokens(settings, facts.choices, plan, longest)) {
    plan.sequence_tokens = own->longest_span;
  }
  if (!settings.objective_options.empty()) TakeOwnOfStep(facts.choices, &plan);
  RequireOwnOptions(settings, facts.choices, plan);
  RequireSuitableModel(facts.choices, plan, facts.model);
  RequireCarriedState(plan, facts.model);
  RequirePositions(plan.sequence_tokens, longest, "use a shorter --seq");
  if (settings.mixed_precision == "auto")
    plan.precision = ParsePrecision("auto", facts.fast_bf16, facts.fast_fp16);
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
    ReplaceSchedule(settings, facts, parent, &planned);
  } else {
    AdjustSchedule(settings, parent.schedule.total_steps, &plan);
  }
  RequireOptimizerOptions(facts.choices, plan);
  return planned;
}

}  // namespace trainwright
