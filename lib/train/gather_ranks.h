/// What the ranks of a run report to each other about themselves, for its records. All ranks call together.
#pragma once

#include <c10/core/Device.h>

#include "lib/dist/world.h"
#include "lib/run/rank_records.h"

namespace trainwright {

/// \param device of this rank
/// \returns the names of their machines, by rank, and how many devices they have; nothing where there is one
///     rank
/// \throws as World::Reduce
RankRecords GatherPlaces(World* world, c10::Device device);

/// The same, with the peaks of memory so far.
RankRecords GatherRanks(World* world, c10::Device device);

}  // namespace trainwright
