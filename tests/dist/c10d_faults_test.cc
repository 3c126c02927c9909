// What becomes of the others where one rank is killed, stopped, cut off, fails or does not come.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/c10d_world.h"
#include "tests/dist/rank_processes.h"

namespace trainwright {
namespace {

using test::RankProcesses;
using test::RankTalk;
using testing::AllOf;
using testing::HasSubstr;

constexpr double kTimeout_s = 3, kUntilItHangs_s = 30;
// Of a machine that does other things as well; scripts/compare/rank_faults.py measures how long it takes.
constexpr double kMost_s = 5 * kTimeout_s;
constexpr int64_t kRanks = 3;
constexpr std::chrono::milliseconds kUntilAllWait{300};

/// What the others wait for while the rank is lost.
enum class Phase { kSum, kExchange, kAgree, kClose };
constexpr Phase kPhases[] = {Phase::kSum, Phase::kExchange, Phase::kAgree, Phase::kClose};

void WaitIn(Phase phase, C10dWorld* world) {
  const at::Tensor values = at::zeros({world->size()}, at::kFloat);
  const std::vector<int64_t> ones(world->size(), 1);
  switch (phase) {
    case Phase::kSum:
      return world->collectives()->BeginSum(values)->Wait();
    case Phase::kExchange:
      return world->collectives()->BeginExchange(values, at::zeros_like(values), ones, ones)->Wait();
    case Phase::kAgree:
      world->Agree({1});
      return;
    case Phase::kClose:
      return world->Close();
  }
}

/// \param listener what becomes of a socket that listens for new ones
void CutConnections(void (*listener)(int)) {
  std::vector<std::pair<int, bool>> sockets;  // and whether they listen
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0)
      sockets.emplace_back(fd, listens != 0);
  }
  for (const auto& [fd, listens] : sockets) listens ? listener(fd) : void(shutdown(fd, SHUT_RDWR));
}

/// As behind a cut cable nobody comes any more; a listener that is shut down would tell its thread.
void CutForGood(C10dWorld*) {
  CutConnections([](int fd) {
    // The number stays taken: its owner closes it later, whatever file has it by then.
    const int unknown_to_all = test::ListenOnLoopback().first;
    dup2(unknown_to_all, fd);
    close(unknown_to_all);
  });
}

/// As where a firewall forgets them: whoever connects again is let in.
void CutOnce(C10dWorld*) {
  CutConnections([](int) {});
}

struct FaultKind {
  const char* name;
  void (*happen)(C10dWorld*);  ///< in the rank at fault
  int status;                  ///< of that rank; -1: it does not end
  const char* cause;           ///< in the words of the others
};

const FaultKind kKilled{"Killed", [](C10dWorld*) { raise(SIGKILL); }, 128 + SIGKILL, "killed"};
const FaultKind kStopped{"Stopped", [](C10dWorld*) { raise(SIGSTOP); }, -1, "stopped"};
const FaultKind kCut{"Cut", CutForGood, 4, "cut"};
const FaultKind kCutOnce{"CutOnce", CutOnce, 4, "cut"};
const FaultKind kFailed{
    "Failed", [](C10dWorld*) { throw Error(ErrorCode::kNonFinite, "step 7", "the loss is not finite"); }, 6,
    "ended with status 6: the loss is not finite"};
const FaultKind kExited{"Exited", [](C10dWorld*) { std::exit(0); }, 0, "cut off"};
const FaultKind kThrew{"ThrewWhatIsNoError", [](C10dWorld*) { throw std::runtime_error("no Error"); }, 70,
                       "left the run without a word"};

struct Scene {
  Phase phase;
  int64_t victim;
  std::unique_ptr<RankProcesses> processes;
};

class C10dFaultTest : public testing::TestWithParam<FaultKind> {
 protected:
  /// All others wait in each phase for each rank at fault: side by side, since they do nothing else.
  void Begin() {
    for (const Phase phase : kPhases) {
      for (const int64_t victim : {int64_t{0}, kRanks - 1}) {
        const auto body = [phase, victim, kind = GetParam()](C10dWorld* world, const RankTalk& talk) {
          talk.Ready();
          if (world->rank() == victim) {
            talk.AwaitGo();
            kind.happen(world);
          }
          WaitIn(phase, world);
        };
        scenes_.push_back(
            {phase, victim, test::OpenRankProcesses({.ranks = kRanks, .timeout_s = kTimeout_s}, body)});
      }
    }
    std::this_thread::sleep_for(kUntilAllWait);
    for (const Scene& scene : scenes_) scene.processes->Go();
  }

  /// Waits until all that end have ended.
  void AwaitEnds(double most_s, bool with_victims) {
    const auto start = std::chrono::steady_clock::now();
    for (bool all = false;
         !all && std::chrono::steady_clock::now() - start < std::chrono::duration<double>(most_s);
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      all = true;
      for (const Scene& scene : scenes_) {
        all = scene.processes->Await(0, with_victims ? -1 : scene.victim) && all;
      }
    }
  }

  std::vector<Scene> scenes_;
};

TEST_P(C10dFaultTest, EveryOtherRankEndsInTimeNamingTheRankAndTheCause) {
  const FaultKind kind = GetParam();
  Begin();
  AwaitEnds(kUntilItHangs_s, /*with_victims=*/kind.status >= 0);
  double slowest_s = 0;
  for (const Scene& scene : scenes_) {
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      SCOPED_TRACE("phase " + std::to_string(static_cast<int>(scene.phase)) + ", rank " +
                   std::to_string(rank) + ", at fault " + std::to_string(scene.victim) + ": " +
                   scene.processes->ReportOf(rank));
      if (rank == scene.victim && kind.status < 0) continue;
      ASSERT_TRUE(scene.processes->EndOf(rank)) << "hangs";
      EXPECT_EQ(scene.processes->EndOf(rank)->status, rank == scene.victim ? kind.status : 4);
      EXPECT_LT(scene.processes->LeftAfter_s(rank), kMost_s);
      if (rank == scene.victim) continue;
      slowest_s = std::max(slowest_s, scene.processes->LeftAfter_s(rank));
      EXPECT_THAT(scene.processes->ReportOf(rank),
                  AllOf(HasSubstr("rank " + std::to_string(scene.victim)), HasSubstr(kind.cause)));
    }
  }
  RecordProperty("slowest_s", std::to_string(slowest_s));
}

INSTANTIATE_TEST_SUITE_P(Ranks, C10dFaultTest,
                         testing::Values(kKilled, kStopped, kCut, kCutOnce, kFailed, kExited, kThrew),
                         [](const auto& info) { return std::string(info.param.name); });

class C10dStoppedTest : public C10dFaultTest {};

TEST_P(C10dStoppedTest, ARankThatGoesOnAfterTheOthersEndedEndsToo) {
  Begin();
  AwaitEnds(kUntilItHangs_s, /*with_victims=*/false);
  const auto start = std::chrono::steady_clock::now();
  for (const Scene& scene : scenes_) scene.processes->Signal(scene.victim, SIGCONT);
  AwaitEnds(kUntilItHangs_s, /*with_victims=*/true);
  for (const Scene& scene : scenes_) {
    ASSERT_TRUE(scene.processes->EndOf(scene.victim));
    ASSERT_TRUE(scene.processes->LeftAt(scene.victim));
    EXPECT_LT(*scene.processes->LeftAt(scene.victim) - start, std::chrono::duration<double>(kMost_s));
    EXPECT_EQ(scene.processes->EndOf(scene.victim)->status, 4) << scene.processes->ReportOf(scene.victim);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, C10dStoppedTest, testing::Values(kStopped),
                         [](const auto& info) { return std::string(info.param.name); });

class C10dMissingTest : public testing::TestWithParam<int64_t> {};

TEST_P(C10dMissingTest, ThoseThatCameAreToldWhoDidNot) {
  const int64_t missing = GetParam();
  std::vector<int64_t> started;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    if (rank != missing) started.push_back(rank);
  }
  RankProcesses processes(
      {.ranks = kRanks, .timeout_s = 2, .started = started, .hand_over_listen_fd = missing != 0},
      [](C10dWorld*, const RankTalk&) {});
  processes.Await(kUntilItHangs_s);
  for (const int64_t rank : started) {
    ASSERT_TRUE(processes.EndOf(rank));
    EXPECT_EQ(processes.EndOf(rank)->status, 4);
    EXPECT_LT(processes.LeftAfter_s(rank), kMost_s);
    EXPECT_THAT(processes.ReportOf(rank),
                AllOf(HasSubstr("rank " + std::to_string(missing)), HasSubstr("did not come within 2 s")));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, C10dMissingTest, testing::Values(0, 2));

/// A whole job that is stopped and let go on goes on, whichever rank is first.
TEST(C10dWholeStopTest, AllRanksStoppedTogetherForLongerThanTheTimeOutGoOn) {
  constexpr double kShortTimeout_s = 2;
  // A rank whose store is stopped waits for it when its own turn comes.
  constexpr std::chrono::milliseconds kStop{3000}, kStopsBefore{150}, kGoesOnBefore{50};
  std::vector<std::unique_ptr<RankProcesses>> jobs;
  for (int job = 0; job < 2; ++job) {
    jobs.push_back(test::OpenRankProcesses({.ranks = 2, .timeout_s = kShortTimeout_s},
                                           [](C10dWorld* world, const RankTalk& talk) {
                                             talk.Ready();
                                             for (int step = 0; step < 150; ++step) {
                                               world->Agree({1});
                                               std::this_thread::sleep_for(std::chrono::milliseconds(10));
                                             }
                                             world->Close();
                                           }));
  }
  std::this_thread::sleep_for(kUntilAllWait);
  const auto signal = [&jobs](int number, std::chrono::milliseconds between) {
    for (const int64_t first : {0, 1}) jobs[static_cast<size_t>(first)]->Signal(first, number);
    std::this_thread::sleep_for(between);
    for (const int64_t first : {0, 1}) jobs[static_cast<size_t>(first)]->Signal(1 - first, number);
  };
  signal(SIGSTOP, kStopsBefore);
  std::this_thread::sleep_for(kStop);
  signal(SIGCONT, kGoesOnBefore);
  for (const auto& job : jobs) {
    ASSERT_TRUE(job->Await(kUntilItHangs_s));
    for (const int64_t rank : {0, 1}) EXPECT_EQ(job->EndOf(rank)->status, 0) << job->ReportOf(rank);
  }
}

}  // namespace
}  // namespace trainwright
