#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/checkpoint/run_status.h"
#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/dist/c10d_world.h"
#include "lib/dist/rank_threads.h"
#include "lib/dist/run_in_world.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/launch/local_ranks.h"
#include "lib/launch/rank_gpu.h"
#include "lib/launch/rank_place.h"
#include "lib/model/built_in_families.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/html_report.h"
#include "lib/run/settings_check.h"
#include "lib/train/merge_job.h"
#include "lib/train/restarted_run.h"
#include "lib/train/train_job.h"
#include "tools/train_options.h"

namespace trainwright {
namespace {

/// A preset's whole number; 0 where it does not say.
int64_t PresetNumber(const OptionPreset* preset, const std::string& key) {
  if (preset == nullptr) return 0;
  for (const auto& [name, value] : preset->values) {
    if (name == key) return std::stoll(value);
  }
  return 0;
}

/// \returns the exit status
int TellStatus(const std::string& path, bool as_json, nlohmann::ordered_json* summary) {
  const RunStatus status = ReadRunStatus(path);
  const nlohmann::ordered_json json = EncodeRunStatus(status);
  summary->update(json);
  summary->erase("schema");  // the summary has its own
  StdoutSink().Write(AsBytes(as_json ? JsonLineOf(json) : path + ": " + status.Text() + "\n"));
  return status.exit_status();
}

/// One process of `train`: what it was asked, and what it is among others.
class TrainProcess {
 public:
  TrainProcess(std::vector<std::string> argv, TrainSettings* settings, ToolRun* run)
      : argv_(std::move(argv)), settings_(*settings), run_(*run) {}

  /// \returns the exit status
  int Run() {
    const int64_t restarts = RestartsFromEnvironment();
    const std::optional<RankPlace> place = TakeRankPlace();
    if (place) SpeakAs(*place);
    CheckTrainSettings(settings_);  // before a GPU's libraries are loaded for nothing
    if (place) return RunAs(*place, restarts);
    return settings_.nproc > 1 ? StartRanks() : Train(SetUp(), restarts, Solo());
  }

 private:
  /// Rank 0 speaks for the run, the others of what goes wrong with them.
  void SpeakAs(const RankPlace& place) {
    if (place.rank == 0) return;
    CommonOptions& common = run_.common;
    ConfigureLog("train[" + std::to_string(place.rank) + "]", common.quiet     ? LogLevel::kError
                                                              : common.verbose ? LogLevel::kDebug
                                                                               : LogLevel::kWarning);
    common.progress = ProgressMode::kNever;
    common.summary_path.clear();
  }

  int StartRanks() {
    const int status = RunLocalRanks(
        {.ranks = settings_.nproc, .argv = argv_, .grace_s = settings_.dist_timeout_s});
    run_.common.summary_path.clear();  // rank 0 has written it
    return status;
  }

  int RunAs(const RankPlace& place, int64_t restarts) {
    if (place.launcher != kOwnLauncher) CheckOtherLauncher(settings_, run_.options, place.launcher);
    CheckRanks(settings_, place.ranks);
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const auto gpu = VisibleGpuOfRank(visible == nullptr ? std::nullopt : std::optional<std::string>(visible),
                                      CountMachineGpus(), place.local_rank);
    if (gpu) setenv("CUDA_VISIBLE_DEVICES", gpu->c_str(), /*overwrite=*/1);  // before CUDA's libraries read it
    C10dWorld world(place, {.timeout_s = settings_.dist_timeout_s});
    return RunInWorld(&world, [&] {
      world.RequireEqual(Facts());
      if (settings_.threads == 0) {
        settings_.threads = ThreadsOfRanks(&world, MachineIdentity(), UsableCores());
      }
      const ProcessSetup process = SetUp();
      world.RequireEqual({{"device", process.device.str()}, {"threads", std::to_string(process.threads)}});
      return Train(process, restarts, &world);
    });
  }

  /// What decides the bits of a run, or which of them travel when, and no plan holds.
  std::map<std::string, std::string> Facts() const {
    return {{"version", TRAINWRIGHT_VERSION},
            {"torch build", TorchBuild()},
            {"CPU capability", CpuCapability()},
            {"--threads", std::to_string(settings_.threads)},
            {"--ddp-bucket-mb", std::to_string(settings_.ddp_bucket_mb)}};
  }

  ProcessSetup SetUp() const {
    return SetUpProcess({.threads = settings_.threads,
                         .device = settings_.device,
                         .mem_fraction = settings_.mem_fraction,
                         .keep_room_for_libraries = true});
  }

  int Train(const ProcessSetup& process, int64_t restarts, World* world) {
    settings_ = SettingsAfterRestart(settings_, restarts, world);
    const ModelFamilies families = BuiltInFamilies();
    const TrainJobContext context = {.families = families,
                                     .world = world,
                                     .process = process,
                                     .progress = run_.common.progress,
                                     .argv = argv_,
                                     .options = run_.options,
                                     .preset_batch = PresetNumber(run_.preset, "batch"),
                                     .preset_accum = PresetNumber(run_.preset, "accum"),
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    return RunTraining(settings_, context, &run_.summary);
  }

  std::vector<std::string> argv_;
  TrainSettings& settings_;
  ToolRun& run_;
};

/// Does what is to be done instead of training, if it is.
/// \returns the exit status; nullopt: nothing is
std::optional<int> RunInstead(const TrainSettings& settings, ToolRun* run) {
  if (!settings.report.empty()) {
    run->summary["report"] = WriteRunReports(settings.report);
    return 0;
  }
  if (!settings.status.empty()) return TellStatus(settings.status, settings.status_json, &run->summary);
  if (!settings.merge.empty()) {
    run->summary.update(MergeAdapter(BuiltInFamilies(), settings.merge, settings.init, settings.out,
                                     settings.allow_other_base));
    return 0;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();  // before torch's libraries first compute
  TrainSettings settings;
  return RunTool(
      argc, argv, TrainInfo(), [&](CLI::App& app) { DefineTrainOptions(app, &settings); },
      [&](ToolRun& run) {
        if (const auto status = RunInstead(settings, &run)) return *status;
        return TrainProcess(std::vector<std::string>(argv, argv + argc), &settings, &run).Run();
      });
}
