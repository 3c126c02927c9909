/// What must be the same on all ranks for their results to belong together, compared.
#pragma once

#include "lib/dist/facts.h"
#include "lib/dist/world.h"

namespace trainwright {

/// Compares with what rank 0 has. All ranks call together.
/// \param facts by a name that messages use: "sha256 of the data"
/// \throws as CheckFacts, as World::Reduce
void RequireEqual(World* world, const Facts& facts, const FactsRule& rule = {});

}  // namespace trainwright
