/// The presets of `train`: data only, torch-free.
#pragma once

#include <vector>

#include "lib/cli/option_preset.h"

namespace trainwright {

const std::vector<OptionPreset>& TrainPresets();

}  // namespace trainwright
