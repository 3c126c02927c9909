/// Options that have an effect only beside another one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/report/option_value.h"

namespace trainwright {

/// Of the options on the command line: what the environment or a file says may be meant for other calls.
/// \param other an option with its dashes, which is not given
/// \param keys of the options that have an effect only beside it
/// \param options of the process
/// \param hint of the error
/// \throws Error{kUsage} naming the first of them that is there, and the other one
void RefuseWithout(const std::string& other, const std::set<std::string>& keys,
                   const std::vector<OptionValue>& options, const std::string& hint = "");

}  // namespace trainwright
