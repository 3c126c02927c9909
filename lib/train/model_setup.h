/// The model that a session trains, with its weights and adapters in place.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/model/model_family.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/train/resolved_run.h"

namespace trainwright {

struct ModelSetup {
  std::unique_ptr<LanguageModel> model;
  std::string base_folder;                 ///< of adapters: where their base lies; or empty
  std::string before;                      ///< folder of what the run goes on from; or empty
  nlohmann::ordered_json init_provenance;  ///< of the start model, or null
  int64_t runtime_bytes = 0;               ///< anonymous memory in use before there was a model
};

/// Random weights or those of the start model; adapters on random weights get a base folder in the run.
/// \param directory the run's; null on ranks that write no files
/// \throws Error{kUsage, kBadInput, kIo}; Error{kNonFinite} on such weights of the start model or adapter
ModelSetup SetUpNewModel(const ModelFamilies& families, const TrainSettings& settings,
                         const RunDirectory* directory, ResolvedRun* run);

/// The weights of the run's checkpoint.
/// \throws Error{kBadInput} where this build lays the parameters out in another order; Error{kIo}
ModelSetup SetUpResumedModel(const ModelFamilies& families, const ResolvedRun& run);

}  // namespace trainwright
