/// The objective that a plan names.
#pragma once

#include <memory>

#include "lib/objective/objective_registry.h"
#include "lib/run/train_plan.h"

namespace trainwright {

/// \throws as MakeObjective
std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry);

/// The same for records of that kind.
/// \throws Error{kBadInput} on records that the objective does not take
std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry,
                                       RecordKind records);

}  // namespace trainwright
