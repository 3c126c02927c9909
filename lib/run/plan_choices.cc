#include "lib/run/plan_choices.h"

#include "lib/base/error.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"
#include "lib/spec/family.h"
#include "lib/spec/schedule.h"

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

/// \throws Error{kUsage} on own options of an objective that is not the plan's, where these are flags
void RefuseOwnOfOthers(const TrainSettings& settings, const PlanChoices& choices, const TrainPlan& plan) {
  const ObjectiveDescription& objective = choices.Objective(plan.objective);
  for (const auto& [name, value] : AskedOwnOptions(settings)) {
    if (FindOwnOption(objective.own, name) != nullptr) continue;
    std::string flag, owners;
    for (const ObjectiveDescription& other : choices.objectives) {
      const OwnOption* option = FindOwnOption(other.own, name);
      if (option == nullptr || !option->has_flag()) continue;
      flag = option->flag();
      owners += (owners.empty() ? "" : " or ") + other.name;
    }
    if (owners.empty()) continue;
    throw Error(ErrorCode::kUsage, "--" + flag, "has a meaning only with --objective " + owners);
  }
}

StepSizes SizesOf(const TrainPlan& plan, bool auto_oom) {
  return {.batch = plan.batch,
          .step_samples = plan.samples_per_step(),
          .ranks = plan.ranks,
          .exact_world = plan.exact_world,
          .auto_oom = auto_oom};
}

void Complete(const PlanChoices& choices, ErrorCode unknown_option, TrainPlan* plan) {
  const ObjectiveDescription& objective = choices.Objective(plan->objective);
  const OptimizerDescription& optimizer = choices.Optimizer(plan->optimizer.name);
  plan->takes = objective.takes;
  plan->takes.insert(optimizer.takes.begin(), optimizer.takes.end());
  plan->objective_own =
      WithDescribed(plan->objective_own, objective.own, unknown_option, "the objective " + objective.name);
  plan->optimizer.own = WithDefaults(plan->optimizer.own, optimizer.defaults.own, unknown_option,
                                     "the optimizer " + optimizer.name);
  plan->tuning.embedding.reset();
  if (objective.embedding) plan->tuning.embedding = objective.embedding(plan->objective_own);
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

OwnOptions AskedOwnOptions(const TrainSettings& settings) {
  return ParseOwnOptions(settings.objective_options, "--objective-option", OwnTexts::kTaken);
}

void CompleteAskedPlan(const TrainSettings& settings, const PlanTable& table, const PlanChoices& choices,
                       TrainPlan* plan) {
  RefuseOwnOfOthers(settings, choices, *plan);
  Complete(choices, ErrorCode::kUsage, plan);
  RefuseUntaken(settings, table, choices, *plan);
}

void CompleteStoredPlan(const PlanChoices& choices, TrainPlan* plan) {
  Complete(choices, ErrorCode::kBadInput, plan);
}

std::optional<SampleTokens> OwnSampleTokens(const TrainSettings& settings, const PlanChoices& choices,
                                            const TrainPlan& plan, int64_t longest) {
  const ObjectiveDescription& objective = choices.Objective(plan.objective);
  if (objective.goes_by_seq()) return std::nullopt;
  if (settings.seq) {
    throw Error(ErrorCode::kUsage, "--seq", "has no meaning with --objective " + objective.name, "",
                objective.sample_flags + " say how long its texts are");
  }
  const SampleTokens tokens = objective.sample_tokens(plan.objective_own);
  if (tokens.longest_span > longest) {
    throw Error(ErrorCode::kUsage, objective.sample_flags,
                std::to_string(tokens.longest_span) + " tokens are more than the " + std::to_string(longest) +
                    " positions of the model");
  }
  return tokens;
}

void TakeOwnOfStep(const PlanChoices& choices, TrainPlan* plan) {
  const ObjectiveDescription& objective = choices.Objective(plan->objective);
  if (!objective.own_of_step) return;
  for (const auto& [name, value] : objective.own_of_step(plan->objective_own, SizesOf(*plan, false))) {
    plan->objective_own[name] = value;
  }
}

void RequireOwnOptions(const TrainSettings& settings, const PlanChoices& choices, const TrainPlan& plan) {
  const ObjectiveDescription& objective = choices.Objective(plan.objective);
  if (!objective.problem) return;
  const std::string problem = objective.problem(plan.objective_own, SizesOf(plan, settings.auto_oom));
  if (problem.empty()) return;
  throw Error(ErrorCode::kUsage, "--objective " + objective.name, problem);
}

void RequireOptimizerOptions(const PlanChoices& choices, const TrainPlan& plan) {
  const OptimizerDescription& optimizer = choices.Optimizer(plan.optimizer.name);
  if (!optimizer.problem) return;
  OptimizerOptions options = plan.optimizer;
  if (plan.schedule.cycle_beta1) options.beta1 = kOneCycleLowBeta1;
  const std::string problem = optimizer.problem(options);
  if (!problem.empty()) throw Error(ErrorCode::kUsage, "--optimizer " + optimizer.name, problem);
}

void RequireSuitableModel(const PlanChoices& choices, const TrainPlan& plan, const ModelConfig& model) {
  const ObjectiveDescription& objective = choices.Objective(plan.objective);
  if (!objective.problem_of_model) return;
  const std::string problem =
      objective.problem_of_model(plan.objective_own, FamilyOf(model), model.hidden_size);
  if (!problem.empty()) throw Error(ErrorCode::kUsage, "--objective " + objective.name, problem);
}

}  // namespace trainwright
