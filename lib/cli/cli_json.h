/// The command line of a tool as JSON: what tests freeze, and what other programs can read.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/cli/option_table.h"

namespace trainwright {

nlohmann::ordered_json CliJson(const ToolDoc& doc);

/// What is wrong with a definition: names that break the house rules, missing help, a short name given twice.
std::vector<std::string> LintTool(const ToolDoc& doc);

}  // namespace trainwright
