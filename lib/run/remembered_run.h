/// What a run remembers, run.json and config.yaml, as one: a process that is killed while it writes them
/// leaves a run that is what it was before or what it was to become.
///
/// Of a run that goes on, and of which both change (other options and another length), run.json comes first
/// and holds the new config.yaml, too, as "options"; then comes config.yaml; then run.json without it. So
/// options in run.json take precedence over config.yaml. Of a run that begins run.json comes last: without it
/// there is no run.
#pragma once

#include <optional>
#include <string>

#include "lib/run/run_record.h"

namespace trainwright {

struct OptionsOfRun {
  std::string path;  ///< of the file that holds them
  std::string text;  ///< as of config.yaml
};

/// What the run at this path was asked for; nullopt where nothing reports it.
/// \throws Error{kIo, kBadInput}
std::optional<OptionsOfRun> ReadOptionsOfRun(const std::string& run);

/// Whether that is what is on disk.
/// \param options as of RememberOptions
/// \throws nlohmann::json::type_error on a path that is not UTF-8; Error{kIo, kBadInput}
bool IsRemembered(const std::string& run, const RunRecord& record, const std::string& options);

/// Of a run that begins: another run's record goes first.
/// \throws as IsRemembered
void BeginRemembering(const std::string& run, const RunRecord& record, const std::string& options);

/// Of a run that goes on. Writes what is not on disk yet.
/// \throws as IsRemembered
void GoOnRemembering(const std::string& run, const RunRecord& record, const std::string& options);

}  // namespace trainwright
