/// What a run begins with on a rank, in a form that ranks can compare: each has read its own copy of the
/// files, or drawn its own weights.
#pragma once

#include <string>

#include "lib/dist/facts.h"
#include "lib/dist/world.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/optimizer.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// XXH3-128 of all weights as they are computed with and trained, frozen ones too.
/// \param parameters not sharded yet
Facts FactsOfWeights(const FlatParameters& parameters);

/// Of a state that was restored: XXH3-128 of its counts and its loaders' places, and of the optimizer's
/// tensors that this rank has whole; of a sharded optimizer the sha256 of the file that they come from.
/// \param state its tensors are not read
/// \param checkpoint its folder
/// \throws Error{kBadInput, kIo} where the checkpoint's metadata.json cannot be read
Facts FactsOfState(const TrainerState& state, const Optimizer& optimizer, const std::string& checkpoint);

/// Compares them. All ranks call together.
/// \throws as RequireEqual
void RequireSameStart(World* world, const Facts& facts);

}  // namespace trainwright
