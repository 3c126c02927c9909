/// What the ranks of a run report to each other about themselves, for its records. All ranks call together.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "lib/dist/world.h"
#include "lib/run/rank_records.h"

namespace trainwright {

/// \returns the names of their machines, by rank; none where there is one rank
/// \throws as World::Reduce
std::vector<std::string> GatherHosts(World* world);

/// The same, with the peaks of memory so far.
/// \param device of this rank
RankRecords GatherRanks(World* world, c10::Device device);

}  // namespace trainwright
