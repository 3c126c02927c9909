/// Where the training of a TEN model starts, beside the matrices of lib/model/initialize.h: decays and
/// frequencies of eigen_decay.h; the identity for the mixing of states (the coupling with a little noise), a
/// memory that is nearly closed and gates that let an eighth pass; a selective decay that begins as the
/// constant one; taps of a convolution as torch's Conv1d starts them.
#pragma once

#include <cstdint>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// Whether InitializeTen sets a parameter.
bool StartsAsTen(const Parameter& parameter);

/// A pure function of seed and the parameters' names. Refreshes the compute copy.
/// \param config of the family ten
void InitializeTen(uint64_t seed, const ModelConfig& config, FlatParameters* parameters);

}  // namespace trainwright
