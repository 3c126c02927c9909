/// The ids that end a sample of a model folder, by its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwright {

/// "eos_token_id" of generation_config.json, which chat models use for several ends, or without it that of
/// config.json: an id or a list. Empty where neither has one. Ids that are no token of the model end nothing.
/// \param folder of the model, not of an adapter
/// \throws Error{kBadInput} when generation_config.json is no JSON object, or the ids are no whole numbers
std::vector<uint32_t> EndIdsOf(const std::string& folder);

}  // namespace trainwright
