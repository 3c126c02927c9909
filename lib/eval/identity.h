/// What a result was made from, on one line for the console.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/checksum.h"
#include "lib/model/open_model.h"

namespace trainwright {

/// "model runs/a/checkpoints/step-00000100 (sha256 0123456789ab), adapter ..., data ...".
/// \param data {"path", "sha256"}; a path that is null is left out
std::string DescribeIdentity(const Checkpoint& checkpoint, const nlohmann::ordered_json& data);

/// \throws Error{kUsage} where an output would replace a file of the folders that the model came from, or lie
///     among them
void RefuseToReplaceModel(const std::string& output, const Checkpoint& checkpoint);

/// One hash of what computes: that of the model's weights, or with an adapter that of both hashes' digits.
Sha256Digest WeightsDigestOf(const Checkpoint& checkpoint);

}  // namespace trainwright
