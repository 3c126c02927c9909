#include "lib/train/restarted_run.h"

#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/exact_threads.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_record.h"

namespace trainwright {

TrainSettings SettingsAfterRestart(TrainSettings settings, int64_t restarts, World* world) {
  if (restarts == 0 || settings.resume || settings.dry_run || settings.explain) return settings;
  if (settings.out.empty()) {
    if (world->is_writer()) {
      LogWarning(
          "started again by its launcher, the run starts over: name its folder with --out, so that a "
          "restart continues it");
    }
    return settings;
  }
  const bool goes_on = world->Agree({world->is_writer() && HoldsRun(settings.out) ? 1 : 0})[0] == 1;
  if (!goes_on) return settings;
  settings.resume = true;
  if (settings.find_batch) {  // what was found is in the run's plan
    settings.find_batch = false;
    settings.batch.reset();
    settings.accum.reset();
  }
  if (world->is_writer()) LogInfo("started again by its launcher: continuing " + settings.out);
  return settings;
}

namespace {

/// The run that a process may go on with; empty: none.
std::string RunToGoOnWith(const TrainSettings& settings, int64_t restarts) {
  if (!settings.resume && restarts == 0) return "";
  return settings.out.empty() && settings.resume ? RunDirectory::Newest(kRunsFolder).value_or("")
                                                 : settings.out;
}

}  // namespace

std::optional<CpuGemms> KernelsToGoOnWith(const TrainSettings& settings, int64_t restarts) {
  const std::string run = RunToGoOnWith(settings, restarts);
  if (run.empty()) return std::nullopt;
  try {
    const auto record = ReadRunRecord(run + "/" + kRunRecordFile);
    if (record) return record->choices.cpu_gemms.value_or(FormerCpuGemms());
  } catch (const Error&) {  // which those who continue the run report
  }
  return std::nullopt;
}

int ThreadsToGoOnWith(const TrainSettings& settings, int64_t restarts, World* world) {
  if (settings.threads > 0 || (!settings.resume && restarts == 0)) return 0;
  const std::string run = RunToGoOnWith(settings, restarts);
  int64_t threads = world->is_writer() && !run.empty() ? ThreadsOfExactRun(run) : 0;
  threads = world->Agree({threads})[0];
  if (threads > 0 && world->is_writer()) {
    LogInfo("--threads " + std::to_string(threads) +
            ", as the run had: the bits of --exact-world depend on it");
  }
  return static_cast<int>(threads);
}

}  // namespace trainwright
