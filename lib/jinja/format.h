/// The three ways in which Python fills values into text, and what they share with filters.
#pragma once

#include <string>
#include <string_view>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// `format % values`, with %s, %r, numbers, flags, widths and (names).
std::string PercentFormatted(Machine& machine, std::string_view format, const Value& values);
/// format.format(...): {}, {0}, {name}, their attributes and items, !s and !r, and the formats of text and
/// numbers.
std::string BraceFormat(Machine& machine, std::string_view format, const Arguments& arguments);
/// str.replace, counted before it is made.
Value ReplaceCounted(Machine& machine, const std::string& text, const std::string& old, const std::string& by,
                     int64_t most);
/// str.isupper or islower.
bool IsCaseOf(std::string_view text, bool upper);

}  // namespace trainwright::jinja
