/// The presets of `train`, and the configuration file of another trainer that it reads: data only,
/// torch-free.
#pragma once

#include <vector>

#include "lib/cli/foreign_config.h"
#include "lib/cli/option_preset.h"

namespace trainwright {

const std::vector<OptionPreset>& TrainPresets();

/// YAML files of the LoRA trainer with the sections api_models, dataset, lora and inference, of which `lora`
/// trains.
const ForeignConfig& LoraTrainerConfig();

}  // namespace trainwright
