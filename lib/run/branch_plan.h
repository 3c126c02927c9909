/// The plan of a run that begins with a checkpoint of another: --branch-from.
#pragma once

#include <cstdint>

#include "lib/run/run_planner.h"

namespace trainwright {

/// The parent's plan with what the settings ask for in its place. What the weights and the optimizer's states
/// of the checkpoint are made of cannot change. Without --accum the step is the parent's on any number of
/// ranks.
/// \param facts as of PlanRun; of its records nothing is read
/// \param steps_taken of the parent at its checkpoint, from which the branch counts on
/// \throws Error{kUsage} on values out of range, on what cannot change, and where no step is left to take
PlannedRun PlanBranch(const TrainSettings& settings, const PlanFacts& facts, int64_t steps_taken,
                      const TrainPlan& parent);

}  // namespace trainwright
