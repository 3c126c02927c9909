/// Settings of `train` that exclude each other or are out of range, told before anything is opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// RunTraining does it first; a main does it before it sets up its process.
/// \throws Error{kUsage}
void CheckTrainSettings(const TrainSettings& settings);

/// Refuses what a run of several ranks cannot do.
/// \throws Error{kUsage}
void CheckRanks(const TrainSettings& settings, int64_t ranks);

/// Refuses --nproc in a process that something else than it started as one of several ranks.
/// \param options of the process: an --nproc that the run remembers is no matter then
/// \param launcher of the ranks, as RankPlace names it
/// \throws Error{kUsage}
void CheckOtherLauncher(const TrainSettings& settings, const std::vector<OptionValue>& options,
                        const std::string& launcher);

/// Refuses what needs evaluations of a run that has no data for them.
/// \param options of the process: an --eval-every that only a preset gave needs nothing
/// \param evaluates whether it has
/// \throws Error{kUsage}
void CheckEvaluations(const TrainSettings& settings, const std::vector<OptionValue>& options, bool evaluates);

}  // namespace trainwright
