/// The shape of the learning rate over a run whose length is known: a part of PlanRun.
#pragma once

#include "lib/run/run_planner.h"

namespace trainwright {

/// Completes the schedule of a plan that has what was asked of each of its options by itself.
/// \throws Error{kUsage} on options that exclude each other or do not fit the length
void PlanSchedule(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned);

}  // namespace trainwright
