#include "lib/dist/loopback_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "lib/dist/rank_store.h"
#include "tests/dist/rank_processes.h"

namespace trainwright {
namespace {

constexpr double kTimeout_s = 20;

/// What ranks say who know the store by these names; a machine has `local_ranks` of them.
std::vector<bool> OnLoopback(const std::vector<std::string>& hosts, int64_t local_ranks) {
  const auto [listen_fd, port] = test::ListenOnLoopback();
  RankPlace place;
  place.ranks = static_cast<int64_t>(hosts.size());
  place.local_ranks = local_ranks;
  place.store_host = "127.0.0.1";
  place.store_port = port;
  place.store_listen_fd = listen_fd;
  const RankStore server(place, RankStore::Role::kServe, kTimeout_s);
  place.store_listen_fd.reset();
  std::vector<std::future<bool>> answers;
  for (const std::string& host : hosts) {
    answers.push_back(std::async(std::launch::async, [place, host] {
      RankStore store(place, RankStore::Role::kUse, kTimeout_s);
      RankPlace own = place;
      own.store_host = host;
      return AllOnLoopback(own, &store);
    }));
    ++place.rank;
  }
  std::vector<bool> all;
  for (std::future<bool>& answer : answers) all.push_back(answer.get());
  return all;
}

TEST(LoopbackRanksTest, RanksThatAllReachTheStoreByTheLoopbackAreOnOneMachine) {
  EXPECT_EQ(OnLoopback({"localhost", "127.0.0.1", "::1"}, 1), (std::vector<bool>{true, true, true}));
}

TEST(LoopbackRanksTest, RanksOfWhichOneReachesItOtherwiseAreNot) {
  EXPECT_EQ(OnLoopback({"localhost", "node0"}, 1), (std::vector<bool>{false, false}));
  EXPECT_EQ(OnLoopback({"localhost", "127.0.0.1", "10.0.0.7"}, 1), (std::vector<bool>{false, false, false}));
}

TEST(LoopbackRanksTest, RanksThatTheirLauncherCountsOnOneMachineAre) {
  EXPECT_EQ(OnLoopback({"node0", "node0"}, 2), (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace trainwright
