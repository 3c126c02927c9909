/// The command line of `train`.
#pragma once

#include "lib/cli/tool.h"
#include "lib/run/train_settings.h"

namespace trainwright {

const ToolInfo& TrainInfo();
void DefineTrainOptions(CLI::App& app, TrainSettings* settings);

}  // namespace trainwright
