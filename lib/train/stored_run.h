/// Runs that were begun before: what --resume continues with, and what a branch of another run begins with.
/// The plan is the stored one; the settings must agree with it where it cannot change.
#pragma once

#include <optional>
#include <string>

#include "lib/train/resolved_run.h"

namespace trainwright {

/// A checkpoint of another run that a new one begins with.
struct BranchPoint {
  ParentCheckpoint parent;  ///< found, its step not yet
  /// Of the branch where it has begun; absent: the settings make it.
  std::optional<TrainPlan> plan = {};
};

/// As ResolveNewRun, of a run that goes on from a checkpoint.
/// \param record of the run; null where it has none
void ResolveResumedRun(const TrainSettings& settings, const TrainJobContext& context,
                       const std::string& checkpoint, const RunRecord* record, ChoiceLog* log,
                       ResolvedRun* run);

/// The same of a run that was begun and has no checkpoint.
/// \throws Error{kBadInput} where the data is not the run's
void ResolveBegunRun(const TrainSettings& settings, const TrainJobContext& context, const RunRecord& record,
                     ChoiceLog* log, ResolvedRun* run);

/// The same of a run that begins with the weights, the moments and the place in the data of another's
/// checkpoint. Other data, or another order of it, is read from its beginning.
void ResolveBranchedRun(const TrainSettings& settings, const TrainJobContext& context,
                        const BranchPoint& branch, ChoiceLog* log, ResolvedRun* run);

}  // namespace trainwright
