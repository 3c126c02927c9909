/// What this library says of its objectives. Torch-free.
#pragma once

#include <vector>

#include "lib/spec/objective_description.h"

namespace trainwright {

ObjectiveDescription LmDescription();
ObjectiveDescription SftDescription();

/// Of all of them, in the order in which they are told: lm, sft.
std::vector<ObjectiveDescription> BuiltInObjectiveDescriptions();

}  // namespace trainwright
