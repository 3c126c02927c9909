#include "lib/run/plan_choices.h"

#include "lib/base/error.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {
namespace {

template <typename Description>
const Description& Named(const std::vector<Description>& all, const std::string& name, const char* kind) {
  for (const Description& description : all) {
    if (description.name == name) return description;
  }
  throw Error(ErrorCode::kUsage, kind, "unknown name '" + name + "'");
}

/// "a or b": those that take an option.
template <typename Description>
std::string NamesOfTakers(const std::vector<Description>& all, const std::string& stored) {
  std::string names;
  for (const Description& description : all) {
    if (description.takes.contains(stored)) names += (names.empty() ? "" : " or ") + description.name;
  }
  return names;
}

/// \param text as the plan's rows have it
bool IsSettled(const ObjectiveDescription& objective, const std::string& stored, const std::string& text) {
  const auto settled = objective.settled.find(stored);
  return settled != objective.settled.end() && settled->second == text;
}

/// \throws Error{kUsage}
void RefuseUntaken(const TrainSettings& settings, const PlanTable& table, const PlanChoices& choices,
                   const TrainPlan& plan) {
  for (const PlanOption& option : table) {
    if (option.taken_by == TakenBy::kEveryRun || plan.Takes(option.stored)) continue;
    const nlohmann::json asked = option.value.asked(settings);
    if (asked.is_null()) continue;
    const bool of_objective = option.taken_by == TakenBy::kObjective;
    if (of_objective && IsSettled(choices.Objective(plan.objective), option.stored, AskedText(asked)))
      continue;
    const std::string takers = of_objective ? NamesOfTakers(choices.objectives, option.stored)
                                            : NamesOfTakers(choices.optimizers, option.stored);
    const std::string choice = of_objective ? "--objective " : "--optimizer ";
    throw Error(ErrorCode::kUsage, "--" + option.options.front(),
                takers.empty() ? "is taken by no " + choice.substr(2, choice.size() - 3)
                               : "has a meaning only with " + choice + takers);
  }
}

void Complete(const PlanChoices& choices, ErrorCode unknown_option, TrainPlan* plan) {
  const ObjectiveDescription& objective = choices.Objective(plan->objective);
  const OptimizerDescription& optimizer = choices.Optimizer(plan->optimizer.name);
  plan->takes = objective.takes;
  plan->takes.insert(optimizer.takes.begin(), optimizer.takes.end());
  plan->objective_own =
      WithDefaults(plan->objective_own, objective.own, unknown_option, "the objective " + objective.name);
  plan->optimizer.own = WithDefaults(plan->optimizer.own, optimizer.defaults.own, unknown_option,
                                     "the optimizer " + optimizer.name);
}

}  // namespace

const ObjectiveDescription& PlanChoices::Objective(const std::string& name) const {
  return Named(objectives, name, "objective");
}

const OptimizerDescription& PlanChoices::Optimizer(const std::string& name) const {
  return Named(optimizers, name, "optimizer");
}

PlanChoices BuiltInChoices() {
  return {.objectives = BuiltInObjectiveDescriptions(), .optimizers = BuiltInOptimizerDescriptions()};
}

void CompleteAskedPlan(const TrainSettings& settings, const PlanTable& table, const PlanChoices& choices,
                       TrainPlan* plan) {
  Complete(choices, ErrorCode::kUsage, plan);
  RefuseUntaken(settings, table, choices, *plan);
}

void CompleteStoredPlan(const PlanChoices& choices, TrainPlan* plan) {
  Complete(choices, ErrorCode::kBadInput, plan);
}

}  // namespace trainwright
