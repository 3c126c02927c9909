#include "lib/io/command.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/elapsed.h"
#include "lib/base/signals.h"
#include "lib/io/descendants.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(CommandTest, ExitStatusesAndSignalsAreTold) {
  EXPECT_EQ(RunCommand("exit 7", {}).exit_status, 7);
  EXPECT_EQ(RunCommand("kill -9 $$", {}).exit_status, 128 + SIGKILL);
  EXPECT_EQ(RunCommand("/no/such/program", {.shell = false}).exit_status, 127);
}

TEST(CommandTest, CostsIncludeThoseOfChildren) {
  const CommandRun run = RunCommand("head -c 30000000 /dev/zero | md5sum > /dev/null; sleep 0.05; true", {});
  EXPECT_GE(run.wall_s, 0.05);
  EXPECT_GT(run.cpu_s(), 0.005);
  EXPECT_GT(run.max_memory_bytes, 500'000);
  ASSERT_TRUE(run.written_bytes);
  EXPECT_GE(*run.written_bytes, 30'000'000);
  EXPECT_LT(*run.written_bytes, 31'000'000);
}

TEST(CommandTest, OutputIsKeptWholeAndTheEndOfTheErrors) {
  const CommandRun run =
      RunCommand("head -c 3000000 /dev/zero; seq 1 9999 >&2; echo last >&2", {.keep_output = true});
  EXPECT_EQ(run.output, std::string(3000000, '\0'));
  EXPECT_TRUE(run.error_tail.ends_with("9999\nlast\n"));
  EXPECT_LE(run.error_tail.size(), 4096u);
}

TEST(CommandTest, OutputIsToldAsItComes) {
  std::string told;
  const CommandRun run =
      RunCommand("seq 1 99999; echo last", {.on_output = [&](std::string_view piece) { told += piece; }});
  EXPECT_EQ(run.output, "");
  EXPECT_EQ(told.size(), 588893u);
  EXPECT_TRUE(told.starts_with("1\n2\n") && told.ends_with("99999\nlast\n"));
}

TEST(CommandTest, OutputWithoutEndIsKilledInTime) {
  const auto start = std::chrono::steady_clock::now();
  uint64_t told_bytes = 0;
  const CommandRun run = RunCommand(
      "cat /dev/zero",
      {.timeout_s = 0.3, .on_output = [&](std::string_view piece) { told_bytes += piece.size(); }});
  EXPECT_TRUE(run.timed_out);
  EXPECT_GT(told_bytes, 0u);
  EXPECT_LT(SecondsSince(start), 10);
}

TEST(CommandTest, OutputWithoutEndOfAProcessThatIsLeftIsReadNoLongerThanTheTimeout) {
  const auto start = std::chrono::steady_clock::now();
  const CommandRun run =
      RunCommand("yes & sleep 0.1", {.timeout_s = 0.5, .on_output = [](std::string_view) {}});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_LT(SecondsSince(start), 10);
}

TEST(CommandTest, ATimeoutKillsTheWholeProcessGroup) {
  test::TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const CommandRun run =
      RunCommand("(sleep 30; touch " + folder.path("late") + ") & sleep 30", {.timeout_s = 0.2});
  EXPECT_TRUE(run.timed_out);
  EXPECT_EQ(run.exit_status, 128 + SIGKILL);
  EXPECT_LT(SecondsSince(start), 10);
}

TEST(CommandTest, OneThatIsAbandonedIsKilledAtOnce) {
  std::atomic<bool> abandoned = false;
  const auto start = std::chrono::steady_clock::now();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    abandoned = true;
  });
  const CommandRun run = RunCommand("sleep 30 & sleep 30", {.abandoned = &abandoned});
  later.join();
  EXPECT_FALSE(run.timed_out);
  EXPECT_EQ(run.exit_status, 128 + SIGKILL);
  EXPECT_LT(SecondsSince(start), 10);
}

/// Waits for a file that a command writes a process's number to.
pid_t NumberIn(const std::string& path) {
  pid_t pid = 0;
  while (!(std::ifstream(path) >> pid)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return pid;
}

bool IsRunning(pid_t pid) {
  std::string number, name, state;
  std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> number >> name >> state;
  return !state.empty() && state != "Z" && state != "X";
}

/// A killed process may take a moment.
bool EndsSoon(pid_t pid) {
  const auto start = std::chrono::steady_clock::now();
  while (IsRunning(pid) && SecondsSince(start) < 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return !IsRunning(pid);
}

TEST(CommandTest, WhoeverHasASessionOfItsOwnDiesWithTheCommand) {
  test::TemporaryFolder folder;
  const std::string child = folder.path("child"), orphan = folder.path("orphan");
  AdoptOrphans();
  std::atomic<bool> abandoned = false;
  std::thread later([&] {
    NumberIn(child);
    NumberIn(orphan);
    abandoned = true;
  });
  RunCommand("setsid sleep 60 & echo $! > " + child + "; (setsid sh -c 'echo $$ > " + orphan +
                 "; exec sleep 60' &); sleep 60",
             {.abandoned = &abandoned, .all_descendants = true});
  later.join();
  EXPECT_TRUE(EndsSoon(NumberIn(child)));
  EXPECT_TRUE(EndsSoon(NumberIn(orphan)));
}

TEST(CommandTest, WhatAnEarlierCommandLeftIsSpared) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  RunCommand("(setsid sleep 15 & echo $! > " + folder.path("server") + ")", {.all_descendants = true});
  const pid_t server = NumberIn(folder.path("server"));
  EXPECT_TRUE(RunCommand("sleep 60", {.timeout_s = 0.3, .all_descendants = true}).timed_out);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(IsRunning(server));
  kill(server, SIGKILL);
}

TEST(CommandTest, WhatIsLeftOfItsGroupIsEndedWhereThatIsAskedFor) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  const CommandRun run = RunCommand("sleep 60 & echo $! > " + folder.path("left"),
                                    {.all_descendants = true, .ends_group = true});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_FALSE(IsRunning(NumberIn(folder.path("left"))));
}

TEST(CommandTest, WhatItLeavesGoesOnAsLongAsItIsHeld) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  pid_t left = 0;
  {
    LeftGroup group;
    RunCommand("sleep 60 & echo $! > " + folder.path("left"), {.all_descendants = true, .leaves = &group});
    left = NumberIn(folder.path("left"));
    EXPECT_TRUE(IsRunning(left));
  }
  EXPECT_FALSE(IsRunning(left));
}

TEST(CommandTest, WhatItLeavesMayWriteToStandardErrorBesideTheNextOne) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  LeftGroup group;
  // More than a pipe holds.
  RunCommand("(sleep 0.2; seq 1 99999 >&2; : > " + folder.path("alive") + ") &",
             {.all_descendants = true, .leaves = &group});
  const CommandRun run = RunCommand("until [ -e " + folder.path("alive") + " ]; do sleep 0.01; done",
                                    {.timeout_s = 30, .all_descendants = true, .beside = &group});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_EQ(run.error_tail, "");
}

TEST(CommandTest, WhatIsLeftOfItsGroupMayEndItself) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  RunCommand("(trap 'echo ended > " + folder.path("said") + "; exit' TERM; : > " + folder.path("ready") +
                 "; while :; do sleep 0.01; done) & until [ -e " + folder.path("ready") +
                 " ]; do sleep 0.01; done",
             {.all_descendants = true, .ends_group = true});
  EXPECT_EQ(test::ReadFile(folder.path("said")), "ended\n");
}

TEST(CommandTest, WhatIsLeftOfItsGroupAndDoesNotEndIsKilledAndNotTimed) {
  test::TemporaryFolder folder;
  AdoptOrphans();
  const auto start = std::chrono::steady_clock::now();
  const CommandRun run =
      RunCommand("(trap '' TERM; : > " + folder.path("ready") + "; exec sleep 60) & echo $! > " +
                     folder.path("left") + "; until [ -e " + folder.path("ready") + " ]; do sleep 0.01; done",
                 {.all_descendants = true, .ends_group = true});
  EXPECT_GT(SecondsSince(start) - run.wall_s, 0.9);
  EXPECT_FALSE(IsRunning(NumberIn(folder.path("left"))));
}

TEST(CommandTest, OutputWithoutEndOfWhatIsLeftOfItsGroupIsNoTimeout) {
  AdoptOrphans();
  for (const char* command : {"yes & sleep 0.1", "(trap '' TERM; exec yes) & sleep 0.1"}) {
    const auto start = std::chrono::steady_clock::now();
    const CommandRun run = RunCommand(
        command,
        {.timeout_s = 60, .all_descendants = true, .ends_group = true, .on_output = [](std::string_view) {}});
    EXPECT_FALSE(run.timed_out) << command;
    EXPECT_LT(SecondsSince(start), 30) << command;
  }
}

TEST(CommandTest, AProcessLeftInTheBackgroundIsNotWaitedFor) {
  const CommandRun run = RunCommand("sleep 20 & echo started", {.keep_output = true});
  EXPECT_EQ(run.output, "started\n");
  EXPECT_LT(run.wall_s, 10);
}

TEST(CommandTest, StandardInputIsEmpty) {
  EXPECT_EQ(RunCommand("wc -c", {.keep_output = true}).output, "0\n");
}

TEST(CommandTest, ASignalToUsStopsTheCommand) {
  SetStopSignalForTest(SIGINT);
  EXPECT_EQ(test::CodeOf([] { RunCommand("sleep 30", {}); }), ErrorCode::kInterrupted);
  SetStopSignalForTest(0);
}

}  // namespace
}  // namespace trainwright
