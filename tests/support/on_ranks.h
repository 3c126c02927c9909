/// The same work on all ranks of a world of threads.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "lib/dist/world.h"
#include "tests/train/thread_world.h"

namespace trainwright::test {

/// \param work takes the World of its rank
/// \returns what each returns, by rank
template <typename Work>
auto OnRanks(int64_t ranks, const Work& work) {
  using Result = decltype(work(Solo()));
  ThreadWorld world(ranks);
  std::vector<std::future<Result>> running;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] { return work(world.rank(rank)); }));
  }
  std::vector<Result> results;
  for (std::future<Result>& one : running) results.push_back(one.get());
  return results;
}

/// What one rank alone returns, on a thread like those of several.
template <typename Work>
auto OnOneRank(const Work& work) {
  return std::async(std::launch::async, [&] { return work(Solo()); }).get();
}

}  // namespace trainwright::test
