/// The options that a run remembers in its config.yaml, so that `train --resume --out DIR` needs no other.
///
/// A run remembers all but those of one process: what only says how this process is to begin, what it reports
/// instead of training, and when it is to stop. What the plan holds is written for people and for --config,
/// and not read on resume: the plan is in run.json and in the checkpoints.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/run_record.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"
#include "lib/spec/own_options.h"

namespace trainwright {

/// The keys of config.yaml that a resumed run takes from elsewhere: those of the plan, and the model.
std::set<std::string> KeysOfThePlan();
/// Those that a branch does not take from its parent: these, the place of the parent's copies, and the
/// adapter that the parent began with, for a branch begins with the checkpoint's.
std::set<std::string> KeysOfOneRun();

/// config.yaml: flat YAML that --config reloads, strings as JSON, which is YAML.
/// \param options of the process
/// \param record of the run
std::string RememberOptions(const TrainSettings& settings, const std::vector<OptionValue>& options,
                            const RunRecord& record);

/// Whether an option has the value that the run remembers: nobody gave this process another.
/// \param options of the process
bool IsFromRun(const std::vector<OptionValue>& options, const std::string& key);

/// Takes paths that were remembered, and are not there, from the folder that the run was begun in: what the
/// run reads where it is there, and what it makes.
/// \param options of the process
/// \param working_directory of the run's record
void RelocatePaths(const std::vector<OptionValue>& options, const std::string& working_directory,
                   TrainSettings* settings);
/// The same of the files that own options of the plan's objective name.
/// \param own options of that objective
/// \param working_directory empty: that of this process
void RelocateOwnFiles(const std::vector<OwnOption>& own, const std::string& working_directory,
                      TrainPlan* plan);
/// Takes from the run's record the names of such files that are not where a checkpoint's plan names them: the
/// run was given others since, and may have been stopped before its next checkpoint.
/// \param own options of the plan's objective
void TakeRecordedFiles(const std::vector<OwnOption>& own, const RunRecord& record, TrainPlan* plan);

}  // namespace trainwright
