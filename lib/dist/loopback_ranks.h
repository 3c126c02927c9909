/// Whether the ranks of a world are all on one machine, as far as they can know.
#pragma once

#include "lib/dist/rank_store.h"
#include "lib/launch/rank_place.h"

namespace trainwright {

/// Whether every rank takes all of them for ranks of its machine: by what its launcher says, or since it
/// reaches the store by the loopback. Rank 0 alone may do that while others reach its machine by name, as
/// where MASTER_ADDR is localhost there. Returns once all ranks have called it.
/// \returns the same on all ranks
/// \throws c10d's exceptions where the store is gone
bool AllOnLoopback(const RankPlace& place, RankStore* store);

}  // namespace trainwright
