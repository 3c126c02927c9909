/// What EstimateWorlds found, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/scaling/world_estimates.h"

namespace trainwright {

/// Aligned tables, the reasons of what does not fit, and the assumptions.
/// \param estimates of the request
std::string FormatWorlds(const WorldRequest& request, const WorldEstimates& estimates);

/// The same as an object; null is what is not known.
nlohmann::ordered_json EncodeWorlds(const WorldRequest& request, const WorldEstimates& estimates);

}  // namespace trainwright
