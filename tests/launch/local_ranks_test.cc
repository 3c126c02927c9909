#include "lib/launch/local_ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/launch/rank_place.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
constexpr double kPatience_s = 30;  // before a test is given up

/// Functions of the ranks' scripts: `at FILE` waits for a file that another rank or the test makes, `forever`
/// for nothing.
constexpr char kFunctions[] = R"sh(
  at() { until [ -e $1 ]; do sleep 0.01; done; }
  forever() { while :; do sleep 0.05; done; }
)sh";

/// Ranks that are scripts of bash in a folder of their own.
class LocalRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGINT,
           SIG_DFL);  // a test that runs in a shell's background has it ignored, and bash then cannot trap it
    signal(SIGHUP, SIG_DFL);
  }
  LocalRanksOptions Options(int64_t ranks, const std::string& script) const {
    LocalRanksOptions options;
    options.ranks = ranks;
    options.program = "/bin/bash";
    options.argv = {"bash", "-euc", "cd '" + folder_.path() + "'" + kFunctions + script};
    return options;
  }
  int Run(int64_t ranks, const std::string& script) const { return RunLocalRanks(Options(ranks, script)); }
  /// Runs them below a process of their own, to which things may happen.
  pid_t Fork(const LocalRanksOptions& options) const {
    const pid_t launcher = fork();
    if (launcher == 0) _exit(RunLocalRanks(options));
    return launcher;
  }
  std::string Content(const std::string& name) const { return test::ReadFile(folder_.path(name)); }
  bool Exists(const std::string& name) const { return fs::exists(folder_.path(name)); }
  void Make(const std::string& name) const { test::WriteFile(folder_.path(name), ""); }
  static bool Comes(const std::function<bool()>& holds) {
    const auto start = std::chrono::steady_clock::now();
    while (!holds()) {
      if (SecondsSince(start) > kPatience_s) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  test::TemporaryFolder folder_;
};

/// As the kernel tells it: R, S, T (stopped), Z.
char StateOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid.substr(0, pid.find('\n')) + "/stat");
  std::string number, name;
  char state = 'X';
  file >> number >> name >> state;
  return state;
}

TEST_F(LocalRanksTest, EachRankReadsItsPlaceFromItsEnvironment) {
  ASSERT_EQ(Run(3, "env -0 > env.$RANK"), 0);
  int port = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    std::map<std::string, std::string> variables;
    std::istringstream content(Content("env." + std::to_string(rank)));
    for (std::string entry; std::getline(content, entry, '\0');) {
      variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    }
    const auto place = RankPlaceFromEnvironment([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
    ASSERT_TRUE(place);
    if (rank == 0) port = place->store_port;
    RankPlace expected = {.rank = rank,
                          .ranks = 3,
                          .local_rank = rank,
                          .local_ranks = 3,
                          .store_host = "127.0.0.1",
                          .store_port = port,
                          .launcher = "train --nproc"};
    if (rank == 0) expected.store_listen_fd = place->store_listen_fd;
    EXPECT_EQ(place, expected);
    EXPECT_EQ(place->store_listen_fd.has_value(), rank == 0);
    EXPECT_GT(port, 0);
  }
}

TEST_F(LocalRanksTest, ThePlaceWhereRanksMeetListensBeforeTheyStart) {
  EXPECT_EQ(Run(2, R"sh(
    if [ $RANK = 0 ]; then
      [[ $(readlink /proc/$$/fd/$TRAINWRIGHT_LOCAL_STORE) == socket:* ]]
      at connected
    else
      exec 5<> /dev/tcp/$MASTER_ADDR/$MASTER_PORT
      touch connected
    fi)sh"),
            0);
}

TEST_F(LocalRanksTest, OnlyRankZeroHasTheStandardInput) {
  const std::string own = fs::read_symlink("/proc/self/fd/0").string();
  EXPECT_EQ(Run(3, "readlink /proc/$$/fd/0 > input.$RANK"), 0);
  EXPECT_EQ(Content("input.0"), own + "\n");
  EXPECT_EQ(Content("input.1"), "/dev/null\n");
  EXPECT_EQ(Content("input.2"), "/dev/null\n");
}

TEST_F(LocalRanksTest, ItsArgumentsAreWhatEachRankGets) {
  LocalRanksOptions options = Options(2, R"sh(echo "$*" > arguments.$RANK)sh");
  options.argv.insert(options.argv.end(), {"name", "--batch", "a b", ""});
  EXPECT_EQ(RunLocalRanks(options), 0);
  EXPECT_EQ(Content("arguments.0"), "--batch a b \n");
  EXPECT_EQ(Content("arguments.1"), "--batch a b \n");
}

TEST_F(LocalRanksTest, TheStatusIsTheFirstFailuresOfItsOwnCause) {
  const struct {
    const char* ends;  // of the ranks, which end in their order
    int status;
  } cases[] = {{"0 0 0", 0}, {"0 5 0", 5}, {"0 0 1", 1},       {"4 0 0", 4},   {"4 5 4", 5},
               {"4 4 4", 4}, {"6 5 4", 6}, {"4 143 143", 143}, {"4 4 70", 70}, {"130 130 130", 130}};
  for (const auto& [ends, status] : cases) {
    SCOPED_TRACE(ends);
    EXPECT_EQ(Run(3, std::string("ends=(") + ends + R"sh()
      echo $$ > pid.$RANK.part; mv pid.$RANK.part pid.$RANK
      if [ $RANK != 0 ]; then
        at pid.$((RANK - 1))
        while [ -e /proc/$(< pid.$((RANK - 1))) ]; do sleep 0.01; done  # until its end is known
      fi
      exit ${ends[$RANK]})sh"),
              status);
    for (const char* name : {"pid.0", "pid.1", "pid.2"}) fs::remove(folder_.path(name));
  }
}

TEST_F(LocalRanksTest, ASignalThatKillsARankIsItsCause) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Run(3, R"sh(
    if [ $RANK = 2 ]; then kill -KILL $$; fi
    sleep 0.2
    exit 4)sh"),
            128 + SIGKILL);
  const std::string messages = testing::internal::GetCapturedStderr();
  EXPECT_NE(messages.find("rank 2: was killed by signal 9"), std::string::npos) << messages;
}

TEST_F(LocalRanksTest, SignalsArePassedOnToEachRankOnce) {
  const struct {
    const char* name;
    int number;
  } cases[] = {{"INT", SIGINT}, {"TERM", SIGTERM}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT}};
  for (const auto& [name, number] : cases) {
    SCOPED_TRACE(name);
    EXPECT_EQ(Run(2, std::string("signal=") + name + R"sh(
      trap 'echo $signal >> got.$RANK' $signal
      touch ready.$RANK
      if [ $RANK = 0 ]; then at ready.0; at ready.1; kill -$signal $PPID; fi
      at got.$RANK; sleep 0.2
      exit $((128 + $(kill -l $signal))))sh"),
              128 + number);
    EXPECT_EQ(Content("got.0"), std::string(name) + "\n");
    EXPECT_EQ(Content("got.1"), std::string(name) + "\n");
    for (const char* file : {"got.0", "got.1", "ready.0", "ready.1"}) fs::remove(folder_.path(file));
  }
}

/// ^C goes to the terminal's process group: what is in it gets a signal that is also passed on.
TEST_F(LocalRanksTest, RanksAreInNoGroupThatATerminalSignals) {
  EXPECT_EQ(Run(2, R"sh(
    read -r -a stat < /proc/$$/stat  # field 5 is the process group
    [ ${stat[4]} = $$ ])sh"),
            0);
}

TEST_F(LocalRanksTest, SignalsAreHandledAsBeforeAfterwards) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Run(1, "true");
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCONT}) {
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
  }
}

TEST_F(LocalRanksTest, OthersMayEndByThemselvesWithinTheGrace) {
  EXPECT_EQ(Run(2, R"sh(
    trap 'touch told' TERM
    [ $RANK = 0 ] || exit 5
    sleep 0.5; touch done; exit 4)sh"),
            5);
  EXPECT_TRUE(Exists("done"));
  EXPECT_FALSE(Exists("told"));
}

TEST_F(LocalRanksTest, AfterTheGraceOthersAreToldToEndAndThenKilled) {
  LocalRanksOptions options = Options(3, R"sh(
    case $RANK in
      0) trap 'touch told; exit 7' TERM; at told ;;
      1) at ready; exit 5 ;;
      2) trap '' TERM; touch ready; forever ;;
    esac)sh");
  options.grace_s = 0.3;
  const auto start = std::chrono::steady_clock::now();
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunLocalRanks(options), 5);
  const std::string messages = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Exists("told"));
  EXPECT_GE(SecondsSince(start), 0.6);
  EXPECT_LT(SecondsSince(start), kPatience_s);
  EXPECT_NE(messages.find("rank 0: still runs"), std::string::npos) << messages;
  EXPECT_NE(messages.find("rank 2: still runs"), std::string::npos) << messages;
}

TEST_F(LocalRanksTest, AStoppedRankIsEndedToo) {
  LocalRanksOptions options = Options(2, R"sh(
    if [ $RANK = 0 ]; then touch ready; kill -STOP $$; forever; fi
    at ready; exit 4)sh");
  options.grace_s = 0.2;
  EXPECT_EQ(RunLocalRanks(options), 4);
}

TEST_F(LocalRanksTest, NoRankOutlivesItsLauncher) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // held open by the ranks: its end is theirs
  const pid_t launcher = Fork(Options(3, "trap '' TERM HUP INT; touch ready.$RANK; forever"));
  close(ends[1]);
  ASSERT_TRUE(Comes([&] { return Exists("ready.0") && Exists("ready.1") && Exists("ready.2"); }));
  kill(launcher, SIGKILL);
  ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);
  pollfd wait = {ends[0], POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, static_cast<int>(1e3 * kPatience_s)), 1);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST_F(LocalRanksTest, WhatStopsTheLauncherStopsAllUntilItGoesOn) {
  const pid_t launcher = Fork(Options(2, "echo $$ > pid.$RANK.part; mv pid.$RANK.part pid.$RANK; at go"));
  ASSERT_TRUE(Comes([&] { return Exists("pid.0") && Exists("pid.1"); }));
  kill(launcher, SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, WUNTRACED), launcher);
  ASSERT_TRUE(WIFSTOPPED(status));
  for (const char* name : {"pid.0", "pid.1"}) {
    EXPECT_TRUE(Comes([&] { return StateOf(Content(name)) == 'T'; })) << name;
  }
  Make("go");
  kill(launcher, SIGCONT);
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(LocalRanksTest, AProgramThatIsNotThereFails) {
  LocalRanksOptions options = Options(2, "");
  options.program = folder_.path("none");
  EXPECT_EQ(RunLocalRanks(options), 127);
}

}  // namespace
}  // namespace trainwright
