/// Text files line by line, and JSON Lines whose lines are objects, with messages that name file and line.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/documents/record_reader.h"

namespace trainwright {

/// Calls `use` with every line that is not blank, without the byte order mark of the first. gzip and zstd
/// content is decompressed.
/// \param path "-" is standard input
/// \returns the SHA-256 of the bytes read, as they are stored, in hexadecimal
/// \throws Error{kBadInput} on a line of 1 GiB, Error{kIo, kInterrupted, kTerminated}; what `use` throws
std::string ForEachTextLine(const std::string& path,
                            const std::function<void(std::string_view, const JsonPlace&)>& use);

/// Calls `use` with every line that is not blank.
/// \param path "-" is standard input
/// \returns the SHA-256 of the bytes read, in hexadecimal
/// \throws Error{kBadInput} on a line that is no object, Error{kIo, kInterrupted, kTerminated}
std::string ForEachJsonObject(const std::string& path,
                              const std::function<void(const nlohmann::json&, const JsonPlace&)>& use);

/// The first of these members that the object has.
/// \throws Error{kBadInput} when it has none
const nlohmann::json& MemberOf(const nlohmann::json& object, std::initializer_list<const char*> names,
                               const JsonPlace& place);
/// The same, and it must be a string.
std::string TextMemberOf(const nlohmann::json& object, std::initializer_list<const char*> names,
                         const JsonPlace& place);

}  // namespace trainwright
