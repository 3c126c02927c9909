#include "lib/checkpoint/checkpoint_upkeep.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/path_inside.h"
#include "lib/base/version.h"
#include "lib/run/save_interval.h"

namespace trainwright {

namespace fs = std::filesystem;

Retention RetentionOf(const TrainSettings& settings) {
  return {.newest = settings.keep, .best = settings.keep_best, .delete_copied = settings.delete_after_copy};
}

std::unique_ptr<CheckpointCopier> MakeCopier(const TrainSettings& settings, const RunDirectory& run,
                                             size_t least_capacity) {
  if (settings.copy_to.empty() && settings.copy_command.empty()) return nullptr;
  if (!settings.copy_to.empty()) {
    std::error_code error;
    const fs::path target = fs::weakly_canonical(settings.copy_to, error),
                   run_path = fs::canonical(run.path());
    if (IsInside(target, run_path)) {
      throw Error(ErrorCode::kUsage, "--copy-to", settings.copy_to + " is in the run directory " + run.path(),
                  "", "name a folder outside, best on another disk");
    }
  }
  return std::make_unique<CheckpointCopier>(
      CopySettings{.folder = settings.copy_to,
                   .command = settings.copy_command,
                   .compress = settings.copy_compress,
                   .retries = settings.copy_retries,
                   .timeout_s = ParseSaveInterval(settings.copy_timeout, "--copy-timeout").time_s,
                   .capacity = std::max(static_cast<size_t>(settings.copy_queue), least_capacity),
                   .writer = std::string("train ") + TRAINWRIGHT_VERSION});
}

void QueueCopies(const RunDirectory& run, int64_t newest_step, const UpkeepRecords& records,
                 bool compares_all, CheckpointCopier* copier) {
  for (const int64_t step : run.CheckpointSteps()) {
    if (step > newest_step) continue;
    const std::string path = run.CheckpointPath(step), place = copier->PlaceOf(path);
    std::error_code ignored;
    // What a command made is not to be seen.
    const bool stands = !copier->copies_into_folder() ||
                        (!compares_all && step != newest_step && fs::is_directory(place, ignored));
    if (stands && records.copies.contains({step, place})) {
      copier->AddCopied(step);
    } else {
      copier->Add(step, path);
    }
  }
}

}  // namespace trainwright
