/// What each rank has of its machine, where ranks share machines: how many threads it computes with when
/// nobody says how many, and with how many others it shares memory or a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// Divides the cores of each machine among its ranks, whether what started them gave each its own or let all
/// use all: a core counts for a rank as one over the ranks that may use it. All get the number of the rank
/// that has the least, for bits depend on it.
/// \param machine that this rank is on, as MachineIdentity reports it
/// \param cores that it may use, as UsableCores reports them
/// \returns at least 1, the same in all ranks
/// \throws as World::Reduce
int ThreadsOfRanks(World* world, const std::string& machine, const std::vector<int>& cores);

/// How many ranks, this one among them, have the same thing: the memory of a machine, a GPU.
/// \param identity of the thing; ranks that do not know theirs (empty) share nothing
/// \throws as World::Reduce
int64_t RanksThatShare(World* world, const std::string& identity);

/// How many of such things the ranks have together, one that several have counted once; ranks that do not
/// know theirs have one each.
/// \throws as World::Reduce
int64_t ThingsOfRanks(World* world, const std::string& identity);

}  // namespace trainwright
