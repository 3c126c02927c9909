// What a run remembers changes at once, though it lies in two files.
#include "lib/run/remembered_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "tests/support/support.h"
#include "tests/support/syscall_faults/syscall_faults.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

RunRecord RecordOf(int64_t steps) {
  RunRecord record;
  record.plan.schedule.total_steps = steps;
  record.model = {{"model_type", "llama"}};
  return record;
}

/// Steps and options, as one who resumes the run finds them.
std::pair<int64_t, std::string> Remembered(const std::string& run) {
  const std::optional<RunRecord> record = ReadRunRecord(run + "/run.json");
  const std::optional<OptionsOfRun> options = ReadOptionsOfRun(run);
  return {record ? record->plan.schedule.total_steps : 0, options ? options->text : ""};
}

class RememberedRunTest : public testing::Test {
 protected:
  /// A run of 4 steps.
  std::string NewRun(const std::string& name) {
    const std::string run = folder_.path(name);
    fs::create_directory(run);
    BeginRemembering(run, RecordOf(4), "keep: \"3\"\n");
    return run;
  }
  /// The states that a kill before each system call of `work` on a new run leaves.
  std::set<std::pair<int64_t, std::string>> StatesAfterKills(
      const std::function<void(const std::string& run)>& work) {
    const std::string counted = NewRun("counted");
    test::RecordSyscalls(counted);
    work(counted);
    const size_t calls = test::RecordedSyscalls().size();
    EXPECT_GE(calls, 4u);
    std::set<std::pair<int64_t, std::string>> states;
    for (size_t call = 1; call <= calls; ++call) {
      const std::string run = NewRun("run-" + std::to_string(call));
      const pid_t child = fork();
      if (child == 0) {
        test::SetSyscallFault("any " + run + " " + std::to_string(call) + " KILL");
        work(run);
        _exit(0);
      }
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << call;
      states.insert(Remembered(run));
      work(run);
      EXPECT_EQ(Remembered(run), Remembered(counted)) << call;
      EXPECT_EQ(ReadFile(run + "/run.json"), ReadFile(counted + "/run.json")) << call;
      EXPECT_EQ(ReadFile(run + "/config.yaml"), ReadFile(counted + "/config.yaml")) << call;
      fs::remove_all(run);
    }
    fs::remove_all(counted);
    return states;
  }

  TemporaryFolder folder_;
};

TEST_F(RememberedRunTest, AKillLeavesWhatTheRunWasOrWhatItWasToBecome) {
  using Change = std::pair<int64_t, std::string>;
  for (const Change& change :
       {Change{9, "keep: \"1\"\n"}, Change{9, "keep: \"3\"\n"}, Change{4, "keep: \"1\"\n"}}) {
    EXPECT_THAT(StatesAfterKills([&](const std::string& run) {
                  GoOnRemembering(run, RecordOf(change.first), change.second);
                }),
                testing::UnorderedElementsAre(Change{4, "keep: \"3\"\n"}, change));
  }
}

TEST_F(RememberedRunTest, AKillLeavesNoRunOfAnotherThatBeginsInItsFolderOrThatOne) {
  for (const auto& [steps, options] : StatesAfterKills(
           [](const std::string& run) { BeginRemembering(run, RecordOf(9), "keep: \"1\"\n"); })) {
    EXPECT_TRUE(steps == 0 || (steps == 9 && options == "keep: \"1\"\n")) << steps << " " << options;
  }
}

TEST_F(RememberedRunTest, WhatIsRememberedAlreadyIsNotWrittenAgain) {
  const std::string run = NewRun("run");
  EXPECT_TRUE(IsRemembered(run, RecordOf(4), "keep: \"3\"\n"));
  EXPECT_FALSE(IsRemembered(run, RecordOf(5), "keep: \"3\"\n"));
  EXPECT_FALSE(IsRemembered(run, RecordOf(4), "keep: \"2\"\n"));
  test::RecordSyscalls(run);
  GoOnRemembering(run, RecordOf(4), "keep: \"3\"\n");
  EXPECT_TRUE(test::RecordedSyscalls().empty());
}

TEST_F(RememberedRunTest, OptionsOfAnOlderVersionAndThoseThatAreEditedAreThoseOfConfigYaml) {
  const std::string run = NewRun("run");
  WriteFile(run + "/config.yaml", "keep: \"8\"\n");
  EXPECT_EQ(ReadOptionsOfRun(run)->text, "keep: \"8\"\n");
  EXPECT_EQ(ReadOptionsOfRun(run)->path, run + "/config.yaml");
  fs::remove(run + "/run.json");
  EXPECT_EQ(ReadOptionsOfRun(run)->text, "keep: \"8\"\n");
  fs::remove(run + "/config.yaml");
  EXPECT_FALSE(ReadOptionsOfRun(run));
}

}  // namespace
}  // namespace trainwright
