/// The objective that a plan names.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "lib/objective/objective_registry.h"
#include "lib/run/train_plan.h"
#include "lib/spec/memory_lever.h"

namespace trainwright {

/// \throws as MakeObjective
std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry);

/// The same for data that holds records of these kinds.
/// \throws Error{kBadInput} on records that the objective does not take
std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry,
                                       const std::set<RecordKind>& records);

/// What of the objective's options makes a run take less memory, and the plan has not taken.
std::vector<MemoryLever> ObjectiveLevers(const TrainPlan& plan, const ObjectiveRegistry& registry);

/// How a plan divides its steps.
StepShape ShapeOfStep(const TrainPlan& plan);

}  // namespace trainwright
