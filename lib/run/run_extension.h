/// Another length for a run that has begun: `--resume --steps/--epochs/--tokens MORE`.
///
/// A schedule that does not depend on where the run ends (constant; wsd but for its last steps) goes on as it
/// is; a decay of wsd that nobody asked for is the longer run's, unless the run would be in it already. The
/// others reach their end with the run, so that steps already taken were not those of the longer run; that is
/// done only where it is asked for. Then all that is a share of the run is one of the longer run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/loading/sample_loader.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// Takes over a greater length than the plan has.
/// \param count_epoch of the plan's samples; called for --epochs and --tokens only
/// \param steps_taken of the run
/// \returns what the user should know; empty where no other length is asked for
/// \throws Error{kUsage} on a smaller length, and for a schedule that the run's end shapes without
///     --replan-schedule
std::vector<std::string> ExtendRun(const TrainSettings& settings,
                                   const std::function<EpochCounts(const TrainPlan&)>& count_epoch,
                                   int64_t steps_taken, TrainPlan* plan);

}  // namespace trainwright
