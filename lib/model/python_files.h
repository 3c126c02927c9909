/// The Python sources that are written beside the weights of a model that transformers does not have: the
/// texts of lib/model/python, compiled in by the build.
#pragma once

#include <string_view>

namespace trainwright {

/// configuration_ten.py and modeling_ten.py: the family ten in PyTorch, for transformers.
extern const std::string_view kConfigurationTenText, kModelingTenText;

}  // namespace trainwright
