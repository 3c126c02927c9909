/// generation_config.json: how transformers generates with the model of a folder where nobody says otherwise.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/spec/model_config.h"

namespace trainwright {

inline constexpr char kGenerationConfigFileName[] = "generation_config.json";

/// The folder's; null where it has none.
/// \throws Error{kBadInput} where it is no JSON object; Error{kIo}
nlohmann::ordered_json ReadGenerationConfig(const std::string& folder);

/// The text of the file for a model.
/// \param before of the model that it was trained from: all of it stays but the ids of the special tokens
///     that the model has. Null: there is none, and the model decodes greedily
std::string EncodeGenerationConfig(const ModelConfig& config, const nlohmann::ordered_json& before);

}  // namespace trainwright
