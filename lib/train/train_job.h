/// `train`, from settings to exit status: opens the data, plans, resumes, steps, evaluates, saves, reports.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/model/model_family.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/report/option_value.h"
#include "lib/report/progress.h"
#include "lib/run/train_settings.h"

namespace trainwright {

struct TrainJobContext {
  const ModelFamilies& families;
  /// The ranks that train the run; outlives it. The writer makes, writes and removes all that the run
  /// directory holds, the others read it.
  World* world = Solo();
  ProcessSetup process;  ///< what the settings' threads, device and mem_fraction came to
  ProgressMode progress = ProgressMode::kAuto;
  std::vector<std::string> argv;               ///< for the metrics
  std::vector<OptionValue> options;            ///< for --explain
  int64_t preset_batch = 0, preset_accum = 0;  ///< as in --preset; 0: it does not say
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();  ///< of the process
  OptimizerRegistry optimizers{"optimizer"};                                       ///< that plans may name
  ObjectiveRegistry objectives{"objective"};                                       ///< likewise
};

/// Runs (or continues) a training run, on all ranks of the context's world. The process is left as it is:
/// SetUpProcess comes before.
/// \param summary gets the counts of the run; on other ranks than the writer's the steps at least
/// \returns the exit status: 0 when the run is complete or its time is up, 130 or 143 after a signal and a
///     save
/// \throws Error: kUsage (settings, a run directory in use), kBadInput (data, checkpoint, other tokenizer or
///     data than the run's), kIo (the last checkpoint stays; another rank failed), kDevice, kNonFinite
int RunTraining(const TrainSettings& settings, const TrainJobContext& context,
                nlohmann::ordered_json* summary);

}  // namespace trainwright
