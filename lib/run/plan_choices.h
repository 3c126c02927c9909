/// The objective and the optimizer of a plan: which of its options they take, and those that only they have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/run/plan_option.h"
#include "lib/spec/model_config.h"
#include "lib/spec/objective_description.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

/// What can be chosen among.
struct PlanChoices {
  std::vector<ObjectiveDescription> objectives;
  std::vector<OptimizerDescription> optimizers;

  /// \throws Error{kUsage} on a name that is not among them
  const ObjectiveDescription& Objective(const std::string& name) const;
  const OptimizerDescription& Optimizer(const std::string& name) const;
};

/// Those of this library.
PlanChoices BuiltInChoices();

/// What was asked of the options that only the objective has, each as it was written.
/// \throws Error{kUsage} as ParseOwnOptions
OwnOptions AskedOwnOptions(const TrainSettings& settings);

/// Completes a plan whose objective and optimizer are known.
/// \throws Error{kUsage} on options that were asked for and are not taken, those of another objective too
void CompleteAskedPlan(const TrainSettings& settings, const PlanTable& table, const PlanChoices& choices,
                       TrainPlan* plan);

/// The same of a plan that was read.
/// \throws Error{kBadInput} on options of its objective or optimizer that these do not have
void CompleteStoredPlan(const PlanChoices& choices, TrainPlan* plan);

/// Of a complete plan: how long the samples of its objective are; nullopt: as long as --seq says.
/// \param longest sequence of the model
/// \throws Error{kUsage} where they do not go by --seq, and it was asked for, or they are longer than that
std::optional<SampleTokens> OwnSampleTokens(const TrainSettings& settings, const PlanChoices& choices,
                                            const TrainPlan& plan, int64_t longest);
/// The same: sets those own options of its objective that follow from the step that a run begins with.
void TakeOwnOfStep(const PlanChoices& choices, TrainPlan* plan);
/// The same of all of a plan.
/// \throws Error{kUsage} on own options of its objective that do not go together, or not with its step
void RequireOwnOptions(const TrainSettings& settings, const PlanChoices& choices, const TrainPlan& plan);
/// \throws Error{kUsage} on options of its optimizer that do not go together
void RequireOptimizerOptions(const PlanChoices& choices, const TrainPlan& plan);
/// \throws Error{kUsage} on own options of its objective that do not go together with its model
void RequireSuitableModel(const PlanChoices& choices, const TrainPlan& plan, const ModelConfig& model);

}  // namespace trainwright
