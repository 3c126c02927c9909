/// The options of a training plan: one row each. An option is added by its members of TrainSettings and
/// TrainPlan, its row here, and its line of the command line (tools/train_options.cc).
#pragma once

#include "lib/run/plan_option.h"

namespace trainwright {

/// Immutable; made on first use.
const PlanTable& TrainPlanTable();

}  // namespace trainwright
