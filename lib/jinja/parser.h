/// Parses a template by the grammar of Jinja 3.1's parser.
#pragma once

#include <string>
#include <string_view>

#include "lib/jinja/syntax_tree.h"

namespace trainwright::jinja {

/// \throws Error{kUsage} with the line: what is no Jinja, what this engine lacks, and what is nested too deep
SyntaxTree ParseTemplate(std::string_view source, const std::string& name);

}  // namespace trainwright::jinja
