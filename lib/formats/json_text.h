/// Strict reading and canonical writing of small JSON texts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trainwright {

/// Parses a whole text. Refuses duplicate keys, which JSON readers disagree about, and deep nesting.
/// \param object for messages
/// \throws Error{kBadInput} with the byte offset
nlohmann::json ParseJson(std::string_view text, const std::string& object);

/// Sorted keys, no spaces: one value, one text.
/// \throws Error{kInternal} on strings that are not UTF-8
std::string CanonicalJson(const nlohmann::json& value);

/// For people and scripts: one line with its newline. A path may hold any bytes; those that are not UTF-8
/// become U+FFFD.
std::string JsonLineOf(const nlohmann::ordered_json& value);

}  // namespace trainwright
