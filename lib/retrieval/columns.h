/// Lines of tables: what comes between white space, or between tabs.
#pragma once

#include <string_view>
#include <vector>

namespace trainwright {

/// The words between blanks, tabs and carriage returns; valid while the line is.
std::vector<std::string_view> WordsOf(std::string_view line);

/// What comes between tabs, possibly nothing, without a carriage return at the end.
std::vector<std::string_view> CellsOf(std::string_view line);

}  // namespace trainwright
