/// Options that are the least and the most of one thing.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "lib/cli/config_file.h"
#include "lib/cli/option_exclusion.h"
#include "lib/cli/tool.h"

namespace trainwright {

/// Where the least of ToolInfo::bounds is more than the most, the one whose source takes precedence becomes
/// the other's value, too. A value that is a default takes precedence over nothing, whoever gave it.
/// \param options after their conversion, of whole numbers
/// \param notices gets a sentence where a value that was given is replaced
/// \throws Error{kUsage} where the same source gives both
void SettleBounds(const ToolInfo& info, CLI::App& app, const Origins& origins,
                  std::vector<EffectiveOption>* options, std::vector<std::string>* notices);

}  // namespace trainwright
