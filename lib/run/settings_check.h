/// Settings of `train` that exclude each other or are out of range, reported before anything is opened.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// RunTraining does it first; a main does it before it sets up its process.
/// \throws Error{kUsage}
void CheckTrainSettings(const TrainSettings& settings);

/// Refuses a lowest rate that the schedule does not go down to.
/// \param options of the process: it is asked for where the command line has it
/// \throws Error{kUsage}
void CheckScheduleOptions(const TrainSettings& settings, const std::vector<OptionValue>& options);

/// Of a run that begins: one that is resumed has its split in its plan.
/// \throws Error{kUsage} on a seed without a split
void RequireSplitOfSeed(const TrainSettings& settings);

/// Refuses what a run of several ranks cannot do.
/// \throws Error{kUsage}
void CheckRanks(const TrainSettings& settings, int64_t ranks);

/// Refuses what does not go together with several ranks, or with parts of a step that are added up as a tree.
/// \param division as the settings say, or as the plan of a run that goes on has it
/// \throws Error{kUsage}
void CheckStepDivision(const TrainSettings& settings, const StepDivision& division);

/// Refuses what does not go together with a state that is divided among ranks.
/// \param plan of the run
/// \throws Error{kUsage}
void CheckSharding(const TrainSettings& settings, const TrainPlan& plan);

/// Refuses what needs evaluations of a run that has no data for them.
/// \param options of the process: an --eval-every that only a preset gave needs nothing
/// \param evaluates whether it has
/// \throws Error{kUsage}
void CheckEvaluations(const TrainSettings& settings, const std::vector<OptionValue>& options, bool evaluates);

}  // namespace trainwright
