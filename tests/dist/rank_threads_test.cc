#include "lib/dist/rank_threads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

struct RankOfMachine {
  std::string machine;
  std::vector<int> cores;
};

std::vector<int> Cores(int first, int count) {
  std::vector<int> cores;
  for (int core = first; core < first + count; ++core) cores.push_back(core);
  return cores;
}

/// What all ranks get; -1 where they do not agree.
int ThreadsOf(const std::vector<RankOfMachine>& ranks) {
  const std::vector<int> threads = test::OnRanks(static_cast<int64_t>(ranks.size()), [&](World* world) {
    const RankOfMachine& own = ranks[static_cast<size_t>(world->rank())];
    return ThreadsOfRanks(world, own.machine, own.cores);
  });
  for (const int count : threads) {
    if (count != threads[0]) return -1;
  }
  return threads[0];
}

TEST(RankThreadsTest, CoresThatAllRanksMayUseAreDivided) {
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 8)}, {"a", Cores(0, 8)}}), 4);
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 8)}, {"a", Cores(0, 8)}, {"a", Cores(0, 8)}}), 2);
}

TEST(RankThreadsTest, CoresThatALauncherGaveARankAreItsOwn) {
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 4)}, {"a", Cores(4, 4)}}), 4);
  // Two sockets, as mpirun binds four ranks; cores beyond the 64 of one word.
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 64)}, {"a", Cores(0, 64)}, {"a", Cores(64, 64)}, {"a", Cores(64, 64)}}),
            32);
}

TEST(RankThreadsTest, RanksOfOtherMachinesTakeNothing) {
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 8)}, {"b", Cores(0, 8)}}), 8);
}

TEST(RankThreadsTest, TheRankWithTheLeastDecides) {
  EXPECT_EQ(ThreadsOf({{"a", Cores(0, 16)}, {"b", Cores(0, 6)}, {"b", Cores(0, 6)}}), 3);
}

TEST(RankThreadsTest, ThereIsAlwaysOne) {
  EXPECT_EQ(ThreadsOf({{"a", {5}}, {"a", {5}}, {"a", {5}}}), 1);
  EXPECT_EQ(ThreadsOf({{"a", {1023}}}), 1);
}

TEST(RankThreadsTest, RanksOfOneMachineShareIt) {
  const std::vector<std::string> machines = {"a", "b", "a", "", "", "a"};
  const std::vector<int64_t> shared = test::OnRanks(static_cast<int64_t>(machines.size()), [&](World* world) {
    return RanksThatShare(world, machines[static_cast<size_t>(world->rank())]);
  });
  EXPECT_EQ(shared, (std::vector<int64_t>{3, 1, 3, 1, 1, 3}));
}

TEST(RankThreadsTest, WhatSeveralRanksShareCountsOnce) {
  const std::vector<std::string> devices = {"a", "b", "a", "", "", "a"};
  const std::vector<int64_t> counted = test::OnRanks(static_cast<int64_t>(devices.size()), [&](World* world) {
    return ThingsOfRanks(world, devices[static_cast<size_t>(world->rank())]);
  });
  EXPECT_EQ(counted, std::vector<int64_t>(devices.size(), 4));
}

}  // namespace
}  // namespace trainwright
