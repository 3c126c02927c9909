/// What a result was made from, on one line for the console.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/model/open_model.h"

namespace trainwright {

/// "model runs/a/checkpoints/step-00000100 (sha256 0123456789ab), adapter ..., data ...".
/// \param data {"path", "sha256"}; a path that is null is left out
std::string DescribeIdentity(const Checkpoint& checkpoint, const nlohmann::ordered_json& data);

}  // namespace trainwright
