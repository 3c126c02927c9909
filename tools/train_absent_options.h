/// Options of other trainers that `train` has not, and what serves instead: data only, torch-free.
#pragma once

#include <map>
#include <string>

namespace trainwright {

/// As ToolInfo::absent.
const std::map<std::string, std::string>& OptionsThatTrainLacks();

}  // namespace trainwright
