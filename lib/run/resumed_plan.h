/// The plan of a run that is resumed.
#pragma once

#include <string>
#include <vector>

#include "lib/run/plan_table.h"

namespace trainwright {

/// Checks the flags of a resumed run against its stored plan. Flags that repeat the plan are fine; another
/// split of the same step into micro-batches is taken over into `plan`.
/// \returns warnings
/// \throws Error{kUsage} on a flag that asks for another run
std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan,
                                       const PlanTable& table = TrainPlanTable());

}  // namespace trainwright
