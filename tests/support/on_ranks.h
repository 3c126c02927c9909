/// The same work on all ranks of a world of threads.
#pragma once

#include <cstdint>
#include <future>

#include "lib/dist/world.h"
#include "tests/train/thread_world.h"

namespace trainwright::test {

/// \param work takes the World of its rank
/// \returns what each returns, by rank
template <typename Work>
auto OnRanks(int64_t ranks, const Work& work) {
  return ThreadWorld(ranks).Run(work);
}

/// What one rank alone returns, on a thread like those of several.
template <typename Work>
auto OnOneRank(const Work& work) {
  return std::async(std::launch::async, [&] { return work(Solo()); }).get();
}

}  // namespace trainwright::test
