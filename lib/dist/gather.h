/// What each rank has to say, gathered by all: counts, sums, short texts.
///
/// It travels as counts that are added up (World::Reduce), each rank's between the zeros of the others, which
/// every world can: a message of as many words as all ranks have together. For tensors there are Collectives.
/// All ranks call together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// \param own as many words in all ranks
/// \returns every rank's, by rank
/// \throws as World::Reduce
std::vector<std::vector<int64_t>> GatherWords(World* world, const std::vector<int64_t>& own);
/// \param own of any length, which may differ
/// \returns every rank's, by rank
/// \throws as World::Reduce
std::vector<std::string> GatherBytes(World* world, const std::string& own);

}  // namespace trainwright
