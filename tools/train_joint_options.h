/// What transformers' TrainingArguments, nanoGPT and their like say by several keys together: max_steps
/// overrides num_train_epochs, eval_strategy says whether eval_steps count, and a lowest learning rate is a
/// share of the highest here. Torch-free.
#pragma once

#include <vector>

#include "lib/cli/config_entry.h"

namespace trainwright {

/// As ToolInfo::settle_keys.
std::vector<ConfigEntry> SettleKeysOfTrainers(std::vector<ConfigEntry> entries,
                                              const ConfigSurroundings& around);

}  // namespace trainwright
