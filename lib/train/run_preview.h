/// --explain and --dry-run: prints what a resolved run is and takes, instead of training it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/run/train_settings.h"
#include "lib/train/resolved_run.h"
#include "lib/train/train_job.h"

namespace trainwright {

/// Prints to standard output.
/// \param run_folder of a run that is resumed; empty: not known yet
/// \param summary gets the same as JSON
/// \returns the exit status: 1 where the run does not fit into memory; with --world, where a rank of it does
///     not
int PreviewRun(const TrainSettings& settings, const TrainJobContext& context, const ChoiceLog& log,
               const std::string& run_folder, const ResolvedRun& run, nlohmann::ordered_json* summary);

}  // namespace trainwright
