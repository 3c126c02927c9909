/// Man pages (section 1) in roff, made from a tool's one definition.
#pragma once

#include <string>

#include "lib/cli/option_table.h"

namespace trainwright {

/// \param date "2026-11-21", from the changelog: the clock has no say in generated files
std::string ManPage(const ToolDoc& doc, const std::string& date);

/// Prose for roff: control characters escaped, `code` bold, flags with real minus signs, UTF-8 as named
/// characters.
std::string EscapeRoff(const std::string& text);

}  // namespace trainwright
