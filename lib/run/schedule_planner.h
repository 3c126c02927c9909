/// The shape of the learning rate over a run whose length is known: a part of PlanRun and PlanBranch.
#pragma once

#include <cstdint>

#include "lib/run/run_planner.h"

namespace trainwright {

/// Completes the schedule of a plan that has what was asked of each of its options by itself.
/// \throws Error{kUsage} on options that exclude each other or do not fit the length
void PlanSchedule(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned);

/// The same for a plan that has its parent's schedule but for its kind, which is another. What was asked for
/// the parent's warm-up and last rate holds where the new kind takes it and nothing else is asked for, and
/// the peak does.
/// \throws as PlanSchedule
void ReplaceSchedule(const TrainSettings& settings, const PlanFacts& facts, const TrainPlan& parent,
                     PlannedRun* planned);

/// Gives another plan's schedule, of which the kind stays, what was asked of it, where the plan has what was
/// asked of each option by itself. What is a share of the run becomes one of its new length, unless other
/// lengths are asked for.
/// \param steps_before the run's length that the schedule was planned for
/// \throws as PlanSchedule
void AdjustSchedule(const TrainSettings& settings, int64_t steps_before, TrainPlan* plan);

}  // namespace trainwright
