// What ranks in processes of their own give each other, beside slow sums.
#include "lib/dist/c10d_world.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/rank_store.h"
#include "tests/dist/rank_processes.h"

namespace trainwright {
namespace {

using test::RankProcesses;
using test::RankTalk;

constexpr double kLongest_s = 20;
constexpr int64_t kWide = 100'000;  // more than Gloo sends at once

/// What rank `rank` gives at `index`: small enough that all sums are exact in bf16, too.
int64_t Given(int64_t rank, int64_t index) {
  return (rank + 1) * (index % 7);
}

/// How many elements rank `from` has for rank `to`.
using CountOf = int64_t (*)(int64_t from, int64_t to);
int64_t CountBetween(int64_t from, int64_t to) {
  return (from + 2 * to) % 3;
}
/// As a checkpoint's parts go: nobody else receives anything, and some send nothing.
int64_t CountToRankZero(int64_t from, int64_t to) {
  return to == 0 ? from % 3 : 0;
}
int64_t Sent(int64_t from, int64_t to, int64_t k) {
  return from * 1000 + to * 100 + k;
}

template <typename Values>
void Write(const char* name, const Values& values, std::ostream* out) {
  *out << name;
  for (const auto value : values) *out << " " << value;
  *out << "\n";
}

std::vector<int64_t> ValuesOf(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kLong);
  const int64_t* values = wide.const_data_ptr<int64_t>();
  return {values, values + wide.numel()};
}

at::Tensor GivenBy(int64_t rank, int64_t size, at::ScalarType type) {
  at::Tensor values = at::empty({size}, at::kLong);
  for (int64_t i = 0; i < size; ++i) values.mutable_data_ptr<int64_t>()[i] = Given(rank, i);
  return values.to(type);
}

void Exchange(C10dWorld* world, const char* name, CountOf count_of, std::ostream* out) {
  std::vector<int64_t> sent, send_counts, receive_counts;
  int64_t received = 0;
  for (int64_t other = 0; other < world->size(); ++other) {
    send_counts.push_back(count_of(world->rank(), other));
    receive_counts.push_back(count_of(other, world->rank()));
    received += receive_counts.back();
    for (int64_t k = 0; k < send_counts.back(); ++k) sent.push_back(Sent(world->rank(), other, k));
  }
  const at::Tensor send = at::empty({static_cast<int64_t>(sent.size())}, at::kFloat);
  std::copy(sent.begin(), sent.end(), send.mutable_data_ptr<float>());
  const at::Tensor receive = at::full({received}, -1, at::kFloat);
  world->collectives()->BeginExchange(send, receive, send_counts, receive_counts)->Wait();
  Write(name, ValuesOf(receive), out);
}

std::vector<int64_t> ReceivedBy(int64_t rank, int64_t ranks, CountOf count_of) {
  std::vector<int64_t> received;
  for (int64_t other = 0; other < ranks; ++other) {
    for (int64_t k = 0; k < count_of(other, rank); ++k) received.push_back(Sent(other, rank, k));
  }
  return received;
}

void ShareAll(C10dWorld* world, const RankTalk& talk) {
  std::ostringstream out;
  const int64_t rank = world->rank();
  std::vector<int64_t> counts{rank, 1, -rank};
  world->Reduce(&counts);
  Write("reduce", counts, &out);
  Write("agree", world->Agree({rank, -rank, rank == 1 ? 7 : 0}), &out);
  // Three at once, as the buckets of a step are.
  Collectives* collectives = world->collectives();
  const at::Tensor floats = GivenBy(rank, kWide, at::kFloat);
  const at::Tensor brains = GivenBy(rank, 5, at::kBFloat16);
  const at::Tensor doubles = GivenBy(rank, 1, at::kDouble);
  std::vector<std::unique_ptr<PendingWork>> works;
  for (const at::Tensor& values : {floats, brains, doubles}) works.push_back(collectives->BeginSum(values));
  for (const auto& work : works) work->Wait();
  Write("floats", ValuesOf(floats), &out);
  Write("bfloats", ValuesOf(brains), &out);
  Write("doubles", ValuesOf(doubles), &out);
  Exchange(world, "exchange", CountBetween, &out);
  Exchange(world, "to rank 0", CountToRankZero, &out);
  const at::Tensor all = at::empty({3 * world->size()}, at::kFloat);
  collectives->BeginGather(GivenBy(rank, 3, at::kFloat), all)->Wait();
  Write("gather", ValuesOf(all), &out);
  RequireEqual(world, {{"version", "1"}, {"torch build", "2.11"}});
  world->Close();
  talk.Report(out.str());
}

std::string ExpectedOf(int64_t rank, int64_t ranks) {
  std::ostringstream out;
  int64_t ranks_sum = 0;
  for (int64_t r = 0; r < ranks; ++r) ranks_sum += r;
  Write("reduce", std::vector<int64_t>{ranks_sum, ranks, -ranks_sum}, &out);
  Write("agree", std::vector<int64_t>{ranks - 1, 0, ranks > 1 ? 7 : 0}, &out);
  for (const auto& [name, size] :
       {std::pair{"floats", kWide}, std::pair{"bfloats", int64_t{5}}, std::pair{"doubles", int64_t{1}}}) {
    std::vector<int64_t> sums(size);
    for (int64_t r = 0; r < ranks; ++r) {
      for (int64_t i = 0; i < size; ++i) sums[i] += Given(r, i);
    }
    Write(name, sums, &out);
  }
  std::vector<int64_t> gathered;
  for (int64_t other = 0; other < ranks; ++other) {
    for (int64_t i = 0; i < 3; ++i) gathered.push_back(Given(other, i));
  }
  Write("exchange", ReceivedBy(rank, ranks, CountBetween), &out);
  Write("to rank 0", ReceivedBy(rank, ranks, CountToRankZero), &out);
  Write("gather", gathered, &out);
  return out.str();
}

TEST(C10dWorldTest, ThereIsNoNcclWithoutTheCudaPlugin) {
  EXPECT_FALSE(C10dWorld::HasNccl());
}

void ExpectAllShared(RankProcesses* processes, int64_t ranks) {
  ASSERT_TRUE(processes->Await(kLongest_s));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    EXPECT_EQ(processes->EndOf(rank)->status, 0);
    EXPECT_EQ(processes->ReportOf(rank) == ExpectedOf(rank, ranks), true)
        << processes->ReportOf(rank).substr(0, 300);
  }
}

TEST(C10dWorldTest, RanksGetWhatSlowSumsSay) {
  for (int64_t ranks = 1; ranks <= 4; ++ranks) {
    RankProcesses processes({.ranks = ranks}, ShareAll);
    ExpectAllShared(&processes, ranks);
  }
}

TEST(C10dWorldTest, WhatGpusWouldExchangeThroughTheHostIsTheSame) {
  RankProcesses processes({.ranks = 3}, [](C10dWorld* world, const RankTalk& talk) {
    world->UseGpus(/*by_nccl=*/false);
    ShareAll(world, talk);
  });
  ExpectAllShared(&processes, 3);
}

TEST(C10dWorldTest, RankZeroOpensThePortItselfWhereNoSocketIsHandedOver) {
  RankProcesses processes({.ranks = 2, .hand_over_listen_fd = false}, ShareAll);
  ExpectAllShared(&processes, 2);
}

/// As torchrun does: the store is another process's, and what an earlier attempt left is in it.
TEST(C10dWorldTest, AnAgentsStoreServesOneAttemptAfterTheOther) {
  const auto [listen_fd, port] = test::ListenOnLoopback();
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const pid_t agent = fork();
  if (agent == 0) {
    close(done[1]);
    RankPlace place;
    place.store_host = "127.0.0.1";
    place.store_port = port;
    place.store_listen_fd = listen_fd;
    const RankStore store(place, RankStore::Role::kServe, 5);
    char byte = 0;
    _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(listen_fd);
  for (const char* prefix : {"/worker/attempt_0", "/worker/attempt_1"}) {
    RankPlace place;
    place.store_host = "127.0.0.1";
    place.store_port = port;
    place.store_is_served = true;
    place.store_prefix = prefix;
    RankProcesses processes({.ranks = 2, .prepared = place}, ShareAll);
    ExpectAllShared(&processes, 2);
  }
  close(done[0]);
  close(done[1]);
  int status = 0;
  waitpid(agent, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A port that nobody listens at.
RankPlace PlaceAtFreePort() {
  const auto [listen_fd, port] = test::ListenOnLoopback();
  close(listen_fd);
  RankPlace place;
  place.store_host = "127.0.0.1";
  place.store_port = port;
  return place;
}

/// As of two commands whose launcher gives both the same port.
TEST(C10dWorldTest, ARankThatFindsAnotherRunAtItsPortEndsAloneAndThatRunGoesOn) {
  const RankPlace place = PlaceAtFreePort();
  const auto first =
      test::OpenRankProcesses({.ranks = 2, .prepared = place}, [](C10dWorld* world, const RankTalk& talk) {
        talk.Ready();
        talk.AwaitGo();
        talk.Report(std::to_string(world->Agree({world->rank()})[0]));
        world->Close();
      });
  for (const int64_t ranks : {2, 3}) {
    const int64_t rank = ranks - 1;
    RankProcesses second({.ranks = ranks, .started = {rank}, .prepared = place},
                         [](C10dWorld*, const RankTalk&) {});
    ASSERT_TRUE(second.Await(kLongest_s));
    EXPECT_EQ(second.EndOf(rank)->status, 4);
    EXPECT_NE(second.ReportOf(rank).find("found another run"), std::string::npos) << second.ReportOf(rank);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // by then the first run would know of a fault
  for (int rank = 0; rank < 2; ++rank) first->Go();
  ASSERT_TRUE(first->Await(kLongest_s));
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(first->EndOf(rank)->status, 0) << first->ReportOf(rank);
    EXPECT_EQ(first->ReportOf(rank), "1");
  }
}

void Meet(C10dWorld* world, const RankTalk& talk) {
  talk.Report(std::to_string(world->Agree({world->rank()})[0]));
  world->Close();
}

TEST(C10dWorldTest, ARankOfAnotherRunOfTheLauncherIsRefusedWhileTheFirstGathers) {
  RankPlace first_place = PlaceAtFreePort(), second_place = first_place;
  first_place.launch = "slurm 17.3";
  second_place.launch = "slurm 17.4";
  const double longest_s = kLongest_s;
  RankProcesses first({.ranks = 2, .timeout_s = longest_s, .started = {0}, .prepared = first_place}, Meet);
  RankProcesses second({.ranks = 2, .timeout_s = longest_s, .started = {1}, .prepared = second_place}, Meet);
  ASSERT_TRUE(second.Await(longest_s)) << "it takes the place of the first run's rank";
  EXPECT_EQ(second.EndOf(1)->status, 4);
  EXPECT_NE(second.ReportOf(1).find("found another run"), std::string::npos) << second.ReportOf(1);
  RankProcesses rest({.ranks = 2, .timeout_s = longest_s, .started = {1}, .prepared = first_place}, Meet);
  ASSERT_TRUE(rest.Await(longest_s) && first.Await(longest_s));
  EXPECT_EQ(first.EndOf(0)->status, 0) << first.ReportOf(0);
  EXPECT_EQ(rest.EndOf(1)->status, 0) << rest.ReportOf(1);
}

/// Of a launcher that does not say which run is which.
TEST(C10dWorldTest, OfTwoProcessesOfOneRankTheSecondEndsAloneWhileTheRunGathers) {
  const RankPlace place = PlaceAtFreePort();
  const double longest_s = kLongest_s;
  RankProcesses first({.ranks = 3, .timeout_s = longest_s, .started = {0, 1}, .prepared = place}, Meet);
  RankProcesses second({.ranks = 3, .timeout_s = longest_s, .started = {1}, .prepared = place}, Meet);
  const auto start = std::chrono::steady_clock::now();
  while (!first.EndOf(1) && !second.EndOf(1) &&
         std::chrono::steady_clock::now() - start < std::chrono::duration<double>(longest_s)) {
    first.Look();
    second.Look();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const RankProcesses& refused = first.EndOf(1) ? first : second;
  ASSERT_TRUE(refused.EndOf(1));
  EXPECT_EQ(refused.EndOf(1)->status, 4);
  EXPECT_NE(refused.ReportOf(1).find("found another run"), std::string::npos) << refused.ReportOf(1);
  RankProcesses rest({.ranks = 3, .timeout_s = longest_s, .started = {2}, .prepared = place}, Meet);
  ASSERT_TRUE(rest.Await(longest_s) && first.Await(longest_s) && second.Await(longest_s));
  EXPECT_EQ(first.EndOf(0)->status, 0) << first.ReportOf(0);
  EXPECT_EQ(first.EndOf(1)->status + second.EndOf(1)->status, 4) << first.ReportOf(1) << second.ReportOf(1);
  EXPECT_EQ(rest.EndOf(2)->status, 0) << rest.ReportOf(2);
}

TEST(C10dWorldTest, ASignalEndsTheWaitForTheOtherRanks) {
  SetStopSignalForTest(SIGTERM);  // which the processes inherit
  RankProcesses processes({.ranks = 2, .timeout_s = 8, .started = {0}}, [](C10dWorld*, const RankTalk&) {});
  SetStopSignalForTest(0);
  ASSERT_TRUE(processes.Await(kLongest_s));
  EXPECT_EQ(processes.EndOf(0)->status, 143) << processes.ReportOf(0);
}

TEST(C10dWorldTest, ASignalEndsTheWaitForTheRankThatIsToServeTheStore) {
  SetStopSignalForTest(SIGTERM);
  RankProcesses processes(
      {.ranks = 2, .timeout_s = 3 * kLongest_s, .started = {1}, .prepared = PlaceAtFreePort()},
      [](C10dWorld*, const RankTalk&) {});
  SetStopSignalForTest(0);
  ASSERT_TRUE(processes.Await(kLongest_s));
  EXPECT_EQ(processes.EndOf(1)->status, 143) << processes.ReportOf(1);
}

TEST(C10dWorldTest, ARankWithAnotherFactIsNamedWithIt) {
  RankProcesses processes({.ranks = 3}, [](C10dWorld* world, const RankTalk&) {
    RequireEqual(world, {{"torch build", world->rank() == 1 ? "2.10" : "2.11"}, {"version", "1"}});
  });
  ASSERT_TRUE(processes.Await(kLongest_s));
  EXPECT_EQ(processes.EndOf(1)->status, 2);
  EXPECT_EQ(processes.ReportOf(1), "rank 1 (this one): torch build is 2.10, in rank 0 2.11");
  for (const int64_t rank : {0, 2}) {
    EXPECT_EQ(processes.EndOf(rank)->status, 4);
    EXPECT_EQ(processes.ReportOf(rank), "rank 1: torch build is 2.10, in rank 0 2.11");
  }
}

TEST(C10dWorldTest, ASlowRankIsNoFault) {
  RankProcesses processes({.ranks = 3, .timeout_s = 1}, [](C10dWorld* world, const RankTalk& talk) {
    if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const at::Tensor ones = at::full({1}, 1, at::kFloat);
    world->collectives()->BeginSum(ones)->Wait();
    talk.Report(std::to_string(ones.item<float>()));
    if (world->rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    world->Close();
  });
  ASSERT_TRUE(processes.Await(kLongest_s));
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(processes.EndOf(rank)->status, 0) << processes.ReportOf(rank);
    EXPECT_EQ(processes.ReportOf(rank), "3.000000");
  }
}

TEST(C10dWorldTest, AnErrorThatIsAnnouncedEndsTheOthersWhileItsRankIsStillBusy) {
  static constexpr double kTimeout_s = 3, kBusy_s = 2 * kTimeout_s;
  RankProcesses processes({.ranks = 3, .timeout_s = kTimeout_s}, [](C10dWorld* world, const RankTalk&) {
    if (world->rank() == 0) {
      world->Announce(4, "run/: the disk is full");
      std::this_thread::sleep_for(std::chrono::duration<double>(kBusy_s));
      throw Error(ErrorCode::kIo, "run/", "the disk is full");
    }
    world->Agree({0});
  });
  ASSERT_TRUE(processes.Await(kLongest_s));
  EXPECT_EQ(processes.EndOf(0)->status, 4);
  EXPECT_EQ(processes.ReportOf(0), "run/: the disk is full");
  for (const int64_t rank : {1, 2}) {
    EXPECT_EQ(processes.EndOf(rank)->status, 4);
    EXPECT_EQ(processes.ReportOf(rank), "rank 0: ended with status 4: run/: the disk is full");
    EXPECT_LT(processes.LeftAfter_s(rank), kBusy_s) << "rank 0 goes on until then";
  }
}

TEST(C10dWorldTest, ALookTellsOfARankThatIsGone) {
  RankProcesses processes({.ranks = 2}, [](C10dWorld* world, const RankTalk&) {
    world->Look();
    if (world->rank() == 1) throw Error(ErrorCode::kBadInput, "shards/", "is corrupt");
    while (true) {
      world->Look();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  ASSERT_TRUE(processes.Await(kLongest_s));
  EXPECT_EQ(processes.EndOf(1)->status, 3);
  EXPECT_EQ(processes.EndOf(0)->status, 4);
  EXPECT_EQ(processes.ReportOf(0), "rank 1: ended with status 3: is corrupt");
}

}  // namespace
}  // namespace trainwright
