/// The options that only one objective or one optimizer has, by name: numbers, which its description gives
/// defaults. Torch-free.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

using OwnOptions = std::map<std::string, double>;

/// \param asked NAME=VALUE each
/// \param flag for messages
/// \throws Error{kUsage} on text of another form, on a number that is not finite, and on a name given twice
OwnOptions ParseOwnOptions(const std::vector<std::string>& asked, const std::string& flag);
/// NAME=VALUE each, as ParseOwnOptions takes them.
std::vector<std::string> FormatOwnOptions(const OwnOptions& options);

/// What was said, and the defaults of what was not: a state that was written before an option was there means
/// its default.
/// \param whose for messages: "the objective toy"
/// \throws Error{code} on a name that `defaults` lacks
OwnOptions WithDefaults(const OwnOptions& said, const OwnOptions& defaults, ErrorCode code,
                        const std::string& whose);

}  // namespace trainwright
