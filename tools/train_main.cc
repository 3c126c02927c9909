#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/checkpoint/run_status.h"
#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/model/built_in_families.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/html_report.h"
#include "lib/run/settings_check.h"
#include "lib/train/merge_job.h"
#include "lib/train/train_job.h"
#include "tools/train_options.h"

namespace {

/// A preset's whole number; 0 where it does not say.
int64_t PresetNumber(const trainwright::OptionPreset* preset, const std::string& key) {
  if (preset == nullptr) return 0;
  for (const auto& [name, value] : preset->values) {
    if (name == key) return std::stoll(value);
  }
  return 0;
}

/// \returns the exit status
int TellStatus(const std::string& path, bool as_json, nlohmann::ordered_json* summary) {
  using namespace trainwright;
  const RunStatus status = ReadRunStatus(path);
  const nlohmann::ordered_json json = EncodeRunStatus(status);
  summary->update(json);
  summary->erase("schema");  // the summary has its own
  StdoutSink().Write(AsBytes(as_json ? JsonLineOf(json) : path + ": " + status.Text() + "\n"));
  return status.exit_status();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();  // before torch's libraries first compute
  const ModelFamilies families = BuiltInFamilies();
  TrainSettings settings;
  return RunTool(
      argc, argv, TrainInfo(), [&](CLI::App& app) { DefineTrainOptions(app, &settings); },
      [&](ToolRun& run) {
        if (!settings.report.empty()) {
          run.summary["report"] = WriteRunReports(settings.report);
          return 0;
        }
        if (!settings.status.empty()) return TellStatus(settings.status, settings.status_json, &run.summary);
        if (!settings.merge.empty()) {
          SetUpProcess({.threads = settings.threads, .keep_room_for_libraries = true});
          run.summary.update(
              MergeAdapter(families, settings.merge, settings.init, settings.out, settings.allow_other_base));
          return 0;
        }
        CheckTrainSettings(settings);  // before a GPU's libraries are loaded for nothing
        const TrainJobContext context = {.families = families,
                                         .process = SetUpProcess({.threads = settings.threads,
                                                                  .device = settings.device,
                                                                  .mem_fraction = settings.mem_fraction,
                                                                  .keep_room_for_libraries = true}),
                                         .progress = run.common.progress,
                                         .argv = std::vector<std::string>(argv, argv + argc),
                                         .options = run.options,
                                         .preset_batch = PresetNumber(run.preset, "batch"),
                                         .preset_accum = PresetNumber(run.preset, "accum"),
                                         .optimizers = BuiltInOptimizers(),
                                         .objectives = BuiltInObjectives()};
        return RunTraining(settings, context, &run.summary);
      });
}
