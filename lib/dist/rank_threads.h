/// How many threads each rank computes with, where ranks share machines and nobody says how many.
#pragma once

#include <string>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// Divides the cores of each machine among its ranks, whether what started them gave each its own or let all
/// use all: a core counts for a rank as one over the ranks that may use it. All get the number of the rank
/// that has the least, for bits depend on it.
/// \param machine that this rank is on, as MachineIdentity tells it
/// \param cores that it may use, as UsableCores tells them
/// \returns at least 1, the same in all ranks
/// \throws as World::Reduce
int ThreadsOfRanks(World* world, const std::string& machine, const std::vector<int>& cores);

}  // namespace trainwright
