/// Reading JSON that anybody may have written, and canonical writing of small JSON texts.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwright {

/// How deep JSON of others may be nested: what copies, compares or writes a parsed value calls itself at each
/// level, and would run out of stack.
inline constexpr size_t kMostJsonNesting = 1000;

/// Whether lists and objects of a JSON text are nested deeper than that. Of what is no JSON, either.
bool IsNestedTooDeep(std::string_view text);

/// \throws Error{kBadInput} on a text that is
void RefuseDeepJson(std::string_view text, const std::string& object);

/// The value of a whole text; of members with the same name the last counts, as in Python. A text that is no
/// JSON, or nested too deep, gives a value that is_discarded().
nlohmann::json JsonOf(std::string_view text);
/// The same, with members in their order.
nlohmann::ordered_json OrderedJsonOf(std::string_view text);

/// The text with each number that neither 64 bits nor a double hold replaced by the largest unsigned integer
/// of 64 bits: parsers take it, and whoever needs the values can refuse what no signed integer is. A text
/// that is no JSON remains none.
std::string WithNumbersInRange(std::string_view text);

/// The members of a JSON object, each value as it is written: a number may be longer than any type. Of
/// members with the same name the place is the first's and the value the last's.
/// \param object is valid
std::vector<std::pair<std::string, std::string_view>> MembersAsWritten(std::string_view object);

/// Parses a whole text, in time linear in its size. Refuses duplicate keys, which JSON readers disagree
/// about, and deep nesting.
/// \param object for messages
/// \throws Error: kBadInput with the byte offset; as ThrowIfStopped does
nlohmann::json ParseJson(std::string_view text, const std::string& object);

/// Sorted keys, no spaces: one value, one text.
/// \throws Error{kInternal} on strings that are not UTF-8
std::string CanonicalJson(const nlohmann::json& value);

/// Null where there is no value.
nlohmann::ordered_json ValueOrNull(const std::optional<double>& value);

/// For people and scripts, in one line. A path may hold any bytes; those that are not UTF-8 become U+FFFD.
std::string JsonTextOf(const nlohmann::ordered_json& value);
/// For people and scripts: one line with its newline. A path may hold any bytes; those that are not UTF-8
/// become U+FFFD.
std::string JsonLineOf(const nlohmann::ordered_json& value);

}  // namespace trainwright
