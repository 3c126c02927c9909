#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/run_status.h"
#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/formats/json_text.h"
#include "lib/model/built_in_families.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/branch_reference.h"
#include "lib/run/deepspeed_batch.h"
#include "lib/run/html_report.h"
#include "lib/run/instead_of_training.h"
#include "lib/run/settings_check.h"
#include "lib/spec/own_options.h"
#include "lib/train/average_job.h"
#include "lib/train/merge_job.h"
#include "lib/train/restarted_run.h"
#include "lib/train/train_job.h"
#include "tools/engine_ranks.h"
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
  const std::string text = as_json ? JsonLineOf(json) : path + ": " + status.Text() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);  // RunTool reports errors, but no reader that went away
  return status.exit_status();
}

/// Does what is to be done instead of training, if it is.
/// \returns the exit status; nullopt: nothing is
/// \throws Error{kUsage}
std::optional<int> RunInstead(const TrainSettings& settings, ToolRun* run) {
  CheckInsteadOfTraining(settings, run->options);
  if (!settings.report.empty()) {
    run->summary["report"] = WriteRunReports(settings.report);
    return 0;
  }
  if (!settings.status.empty()) return TellStatus(settings.status, settings.status_json, &run->summary);
  if (!settings.merge.empty()) {
    SetUpProcess({.threads = settings.threads, .keep_room_for_libraries = true});
    run->summary.update(MergeAdapter(BuiltInFamilies(), settings.merge, settings.init, settings.out,
                                     settings.allow_other_base));
    return 0;
  }
  if (!settings.average.empty()) {
    SetUpProcess({.threads = settings.threads, .keep_room_for_libraries = true});
    run->summary.update(AverageModels(BuiltInFamilies(), settings.average, settings.out));
    return 0;
  }
  return std::nullopt;
}

/// \throws Error{kUsage} on values that the own options of the optimizer asked for cannot have
void CheckOptimizerOptions(const TrainSettings& settings) {
  if (settings.optimizer.empty() || settings.optimizer_options.empty()) return;
  const OptimizerDescription description = BuiltInOptimizers().Find(settings.optimizer).description;
  if (description.own.empty()) return;
  WithDescribed(ParseOwnOptions(settings.optimizer_options, "--optimizer-option"), description.own,
                ErrorCode::kUsage, "--optimizer " + description.name);
}

/// Trains, as the processes that there are.
/// \returns the exit status
int Train(const std::vector<std::string>& argv, TrainSettings settings, ToolRun* run) {
  if (!settings.branch_from.empty()) {
    run->KeepFromSummary({RunOf(ParseBranchReference(settings.branch_from))});
  }
  std::string notice;
  EngineRequest request;
  request.argv = argv;
  request.nproc = settings.nproc;
  request.dist_timeout_s = settings.dist_timeout_s;
  request.process.threads = settings.threads;
  request.process.device = settings.device;
  request.process.mem_fraction = settings.mem_fraction;
  request.kernels = settings.kernels;
  request.process.keep_room_for_libraries = true;
  request.process.gpu = {.tf32 = settings.tf32 == "on",
                         .deterministic = settings.deterministic,
                         .allocator_conf = settings.alloc_conf};
  const auto given = [](bool flag) { return std::string(flag ? "given" : "not given"); };
  // Which gradients travel when; and what decides when ranks first talk of the run.
  request.facts = {{"--ddp-bucket-mb", std::to_string(settings.ddp_bucket_mb)},
                   {"--resume", given(settings.resume)},
                   {"--find-batch", given(settings.find_batch)},
                   {"--dry-run or --explain", given(settings.dry_run || settings.explain)}};
  request.threads_to_keep = [&](World* world, int64_t restarts) {
    return ThreadsToGoOnWith(settings, restarts, world);
  };
  request.measures_kernels = !settings.deterministic && settings.exact_world.value_or(0) == 0;
  if (!IsGiven("kernels", run->options)) {  // what a run remembers of the option is no more than it stored
    request.kernels_to_keep = [&](int64_t restarts) { return KernelsToGoOnWith(settings, restarts); };
  }
  request.check = [&](int64_t ranks) {
    CheckTrainSettings(settings);
    CheckOptimizerOptions(settings);
    CheckRanks(settings, ranks);
    for (const OptionValue& train_batch_size : run->file_values) {
      notice = TakeTrainBatchSize(train_batch_size, ranks, &run->options, &settings);
    }
  };
  return RunEngine(request, run, [&](const EngineProcess& process) {
    if (!notice.empty()) LogInfo(notice);
    const ModelFamilies families = BuiltInFamilies();
    const TrainJobContext context = {.families = families,
                                     .world = process.world,
                                     .process = process.setup,
                                     .progress = run->common.progress,
                                     .argv = argv,
                                     .options = run->options,
                                     .preset_batch = PresetNumber(run->preset, "batch"),
                                     .preset_accum = PresetNumber(run->preset, "accum"),
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    return RunTraining(SettingsAfterRestart(settings, process.restarts, process.world), context,
                       &run->summary);
  });
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
        return Train(std::vector<std::string>(argv, argv + argc), settings, &run);
      });
}
