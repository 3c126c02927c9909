/// Whether the ranks of a run read the same data.
///
/// Each reads its own copy of it and takes its share of every step. A chunk that one of them alone cannot
/// read, and leaves out, moves the samples of all that follow: ranks would train on other samples than one
/// process does, some twice and some never. So they report to each other in every step where their loaders
/// are, by what they agree on anyway.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/dist/world.h"
#include "lib/loading/sample_loaders.h"

namespace trainwright {

/// Where the loaders are and what they have left out, in two words.
/// \returns for World::Agree; none where there is one rank
std::vector<int64_t> PlaceAnswers(const World& world, const SampleLoaders& loaders);

/// \param agreed on these answers
/// \throws where ranks differ: Error{kBadInput} on those that are elsewhere than rank 0, Error{kIo} on the
///     others, naming the first such rank and how it differs; as World::Reduce
void RequireSamePlaces(World* world, const SampleLoaders& loaders, const std::vector<int64_t>& agreed);

}  // namespace trainwright
