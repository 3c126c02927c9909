/// Jinja's filters.
#pragma once

#include <string_view>

#include "lib/jinja/syntax_tree.h"

namespace trainwright::jinja {

/// Null where there is not one of this name.
FilterFunction FindFilter(std::string_view name);
/// Whether Jinja has a filter of this name, be it supported here or not.
bool IsFilterOfJinja(std::string_view name);

}  // namespace trainwright::jinja
