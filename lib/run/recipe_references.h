/// References within a YAML file, as in OmegaConf: ${output_dir}/logs.
#pragma once

#include <set>
#include <string>

#include "lib/formats/yaml_text.h"

namespace trainwright {

/// Puts what `${key}` and `${section.key}` refer to in their place, in every text of the file. A reference
/// that is all of a text takes the type of what it refers to.
/// \returns the names that are referred to
/// \throws Error{kUsage} naming key and line on one to no single value of this file, on a resolver
///     (${env:NAME}), and where references lead to themselves
std::set<std::string> ResolveReferences(YamlText* yaml, const std::string& path);

}  // namespace trainwright
