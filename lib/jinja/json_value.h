/// JSON as a value of a template.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// \param is_data as of RenderOptions::data_variables
/// \throws VariableProblem for what is nested too deep or an integer beyond 64 bits
Value ValueOfJson(Machine& machine, const nlohmann::ordered_json& json, bool is_data, uint32_t depth = 0);

}  // namespace trainwright::jinja
