/// The steps of resolving that new runs and stored ones share. A run is filled part by part: each step takes
/// what those before it have filled in.
#pragma once

#include <string>

#include "lib/loading/sample_loaders.h"
#include "lib/run/run_planner.h"
#include "lib/run/train_settings.h"
#include "lib/train/choice_log.h"
#include "lib/train/resolved_run.h"
#include "lib/train/train_job.h"

namespace trainwright {

/// The samples of a run from the first on, by the plan's objective.
/// \throws Error{kUsage, kBadInput} on records that the objective does not mix
OpenedLoaders OpenLoaders(const TrainJobContext& context, const ResolvedRun& run, TrainPlan plan,
                          const LoaderOptions& loader);
/// Opens the run's own loaders and chooses their cache.
void OpenOwnLoaders(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                    ResolvedRun* run);
/// Of the data, as a plan reads it.
EpochCounts CountEpoch(const TrainJobContext& context, const TrainPlan& plan, const ResolvedRun& run);

/// The objectives and optimizers that there are.
PlanChoices ChoicesOf(const TrainJobContext& context);
/// What a plan depends on beside the settings.
/// \param run outlives the result, as `context` does
PlanFacts FactsOf(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run);

/// Counts what --eval-split holds out.
void CountHeldOut(const TrainSettings& settings, ResolvedRun* run);

/// Adapters that cannot be are refused before anything is written.
/// \throws Error{kUsage, kBadInput}
void CheckTuning(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run);
/// \throws Error{kUsage} on what does not go together with a state that is divided among ranks
void CheckShards(const TrainSettings& settings, const TrainJobContext& context, const TrainPlan& plan);

/// Has the run compute in fp8 what its plan says.
/// \throws Error{kUsage} where its model, its device or what else it chose does not go with that
void TakeFp8(const TrainJobContext& context, ResolvedRun* run);

/// What holds for all ranks: the writer reports it.
void WarnOnce(const TrainJobContext& context, const std::string& message);

}  // namespace trainwright
