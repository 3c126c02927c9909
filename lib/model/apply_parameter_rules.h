/// Freezes parameters and sets their rates and decays, by their names.
#pragma once

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/parameter_rules.h"

namespace trainwright {

/// Before FlatParameters::Allocate.
/// \throws Error{kUsage} on a pattern that means none of the trained parameters, and where none would be
///     trained
void ApplyParameterRules(const ParameterRules& rules, FlatParameters* parameters);

}  // namespace trainwright
