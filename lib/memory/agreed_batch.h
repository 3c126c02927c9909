/// The micro-batch of a run of several ranks, each of which looked for one by itself.
#pragma once

#include "lib/dist/world.h"
#include "lib/memory/batch_search.h"

namespace trainwright {

/// The smallest that any rank has found, which is too large for none. All ranks call together.
/// \param own what this rank has found
/// \returns what this rank measured with it; of batch 0, on all ranks, where one could try none
/// \throws as World::Agree
BatchPoint AgreeOnBatch(World* world, const BatchSearch& own);

}  // namespace trainwright
