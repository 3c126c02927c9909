/// What this library says about its optimizers. Torch-free.
#pragma once

#include <vector>

#include "lib/spec/optimizer_options.h"

namespace trainwright {

/// Takes every shared option and has none of its own.
OptimizerDescription AdamWDescription();

/// Of all of them, in the order in which they are reported.
std::vector<OptimizerDescription> BuiltInOptimizerDescriptions();

}  // namespace trainwright
