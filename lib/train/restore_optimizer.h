/// Brings an optimizer to where a training state left it.
#pragma once

#include "lib/optim/optimizer.h"

namespace trainwright {

struct TrainerState;

/// Of a sharded one, this rank's part.
/// \throws Error{kBadInput} when the states are not those of this optimizer on this model, or are of other
///     parameters of it, as a version may have kept them that treated these otherwise
void RestoreOptimizer(const TrainerState& state, Optimizer* optimizer);

}  // namespace trainwright
