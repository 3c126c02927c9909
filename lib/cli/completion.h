/// Shell completions made from a tool's one definition: flags, choices of values, names, files and
/// folders.
#pragma once

#include <string>

#include "lib/cli/option_table.h"

namespace trainwright {

/// Needs bash 4, not the bash-completion package.
std::string BashCompletion(const ToolDoc& doc);
std::string ZshCompletion(const ToolDoc& doc);
std::string FishCompletion(const ToolDoc& doc);

}  // namespace trainwright
