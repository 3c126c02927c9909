/// JSON over several lines, for people who read the file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainwright {

/// With a newline at its end. A path may hold any bytes; those that are not UTF-8 become U+FFFD, as in
/// JsonLineOf.
std::string IndentedJsonOf(const nlohmann::ordered_json& value);

}  // namespace trainwright
