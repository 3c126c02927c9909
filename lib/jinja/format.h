/// The three ways in which Python fills values into text, and what they share with filters.
#pragma once

#include <string>
#include <string_view>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// `format % values`, with %s, %r, numbers, flags, widths and (names).
TracedText PercentFormatted(Machine& machine, const TracedText& format, const Value& values);
/// format.format(...): {}, {0}, {name}, their attributes and items, !s and !r, and the formats of text and
/// numbers.
TracedText BraceFormat(Machine& machine, const TracedText& format, const Arguments& arguments);
/// str.replace, counted before it is made.
Value ReplaceCounted(Machine& machine, const TracedText& text, const std::string& old, const TracedText& by,
                     int64_t most);
/// str.isupper or islower.
bool IsCaseOf(std::string_view text, bool upper);

}  // namespace trainwright::jinja
