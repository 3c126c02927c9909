/// Jinja's tests: what comes after `is`.
#pragma once

#include <string_view>

#include "lib/jinja/syntax_tree.h"

namespace trainwright::jinja {

/// Null where there is not one of this name.
TestFunction FindTest(std::string_view name);

}  // namespace trainwright::jinja
