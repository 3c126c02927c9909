#include "lib/run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tests/support/support.h"
#include "tests/support/syscall_faults/syscall_faults.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::CodeOf;
using test::TemporaryFolder;

void MakeCheckpoint(RunDirectory* run, int64_t step, const std::string& content) {
  test::WriteFile(run->BeginCheckpoint(step) + "/file", content);
  run->CommitCheckpoint(step);
}

TEST(RunDirectory, NumbersRunsFromTheFirstFreeName) {
  const TemporaryFolder folder;
  const std::string parent = folder.path("runs");
  const RunDirectory first = RunDirectory::CreateNumbered(parent, "llama-1m");
  const RunDirectory second = RunDirectory::CreateNumbered(parent, "llama-1m");
  const RunDirectory other = RunDirectory::CreateNumbered(parent, "custom");
  EXPECT_EQ(first.path(), parent + "/llama-1m-001");
  EXPECT_EQ(second.path(), parent + "/llama-1m-002");
  EXPECT_EQ(other.path(), parent + "/custom-001");
}

TEST(RunDirectory, RefusesASecondProcess) {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path("run"));
  // flock belongs to the open file, so a second opening in this process stands for another process.
  EXPECT_EQ(CodeOf([&] { RunDirectory(folder.path("run")); }), ErrorCode::kUsage);
}

TEST(RunDirectory, PointsLatestAtTheCommittedCheckpoint) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "five");
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "five");
  MakeCheckpoint(&run, 12, "twelve");
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "twelve");
  EXPECT_EQ(fs::read_symlink(run.path() + "/latest"), "checkpoints/step-00000012")
      << "relative, so that the run can be moved";
}

TEST(RunOfCheckpoint, IsFoundByTheFolderOfACheckpointAndByLinksToIt) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "five");
  run.PointBestAt(5);
  fs::create_symlink(run.path() + "/best", folder.path("chosen"));
  const std::string path = fs::canonical(run.path()).string();
  for (const std::string& named : {run.path() + "/checkpoints/step-00000005", run.path() + "/latest",
                                   run.path() + "/best/", folder.path("chosen")}) {
    EXPECT_EQ(RunOfCheckpoint(named), path) << named;
  }
}

TEST(RunOfCheckpoint, IsNotThereForOtherFolders) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "five");
  fs::copy(run.CheckpointPath(5), folder.path("step-00000005"));
  for (const std::string& named : {run.path(), run.path() + "/checkpoints", run.path() + "/nothing",
                                   folder.path("step-00000005"), std::string()}) {
    EXPECT_FALSE(RunOfCheckpoint(named)) << named;
  }
}

TEST(RunDirectory, ShowsNothingOfAnUncommittedCheckpoint) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "five");
  test::WriteFile(run.BeginCheckpoint(9) + "/file", "nine");
  EXPECT_THAT(run.CheckpointSteps(), testing::ElementsAre(5));
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "five");
}

TEST(RunDirectory, RemovesWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  {
    RunDirectory run(folder.path("run"));
    MakeCheckpoint(&run, 5, "five");
    test::WriteFile(run.BeginCheckpoint(9) + "/file", "nine");
  }
  const RunDirectory run(folder.path("run"));
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(run.checkpoints_path())) {
    EXPECT_EQ(entry.path().filename(), "step-00000005");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

TEST(RunDirectory, RemovesLinksThatAKilledProcessLeftAndFollowsNone) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("victim"), "precious");
  { const RunDirectory run(folder.path("run")); }
  for (const char* name : {".latest.new", ".best.new", ".latest.tmp-123"}) {
    fs::create_symlink("../victim", folder.path("run") + "/" + name);
  }
  RunDirectory run(folder.path("run"));
  fs::create_symlink("../victim", run.path() + "/.latest.new");
  MakeCheckpoint(&run, 5, "five");
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "five");
  EXPECT_EQ(test::ReadFile(folder.path("victim")), "precious");
  for (const auto& entry : fs::directory_iterator(run.path())) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == ".lock" || !name.starts_with('.')) << name;
  }
}

TEST(RunDirectory, AFolderInPlaceOfALinkIsKeptAndItsErrorSaysWhatToDo) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "five");
  fs::remove(run.path() + "/latest");
  fs::copy(run.CheckpointPath(5), run.path() + "/latest");  // as cp -rL leaves it
  std::string hint;
  try {
    run.PointLatestAt(5);
  } catch (const Error& error) {
    hint = error.hint();
  }
  EXPECT_EQ(hint, "remove " + run.path() + "/latest: the checkpoints are in " + run.checkpoints_path());
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "five");
}

TEST(RunDirectory, ReplacesACheckpointOfTheSameStep) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  MakeCheckpoint(&run, 5, "broken");
  MakeCheckpoint(&run, 5, "whole");
  EXPECT_EQ(test::ReadFile(run.CheckpointPath(5) + "/file"), "whole");
  EXPECT_THAT(run.CheckpointSteps(), testing::ElementsAre(5));
}

TEST(RunDirectory, BringsBackACheckpointWhoseSuccessorDidNotArrive) {
  const TemporaryFolder folder;
  {
    RunDirectory run(folder.path("run"));
    MakeCheckpoint(&run, 5, "old");
    test::WriteFile(run.BeginCheckpoint(5) + "/file", "new");
    test::SetSyscallFault("rename checkpoints/step-00000005 1 EIO...");
    EXPECT_EQ(CodeOf([&] { run.CommitCheckpoint(5); }), ErrorCode::kIo);
    test::SetSyscallFault("");
    EXPECT_FALSE(fs::exists(run.CheckpointPath(5))) << "neither rename worked";
  }
  const RunDirectory run(folder.path("run"));
  EXPECT_EQ(test::ReadFile(run.CheckpointPath(5) + "/file"), "old");
}

TEST(RunDirectory, KeepsTheNewestCheckpoints) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  for (const int64_t step : {1, 2, 10, 30}) MakeCheckpoint(&run, step, "x");
  run.RotateCheckpoints(0, 30);
  EXPECT_THAT(run.CheckpointSteps(), testing::ElementsAre(1, 2, 10, 30));
  run.RotateCheckpoints(2, 30);
  EXPECT_THAT(run.CheckpointSteps(), testing::ElementsAre(10, 30));
}

/// A run whose checkpoint 1 is deleted while its file cannot be, as one that a reader of NFS has open.
std::unique_ptr<RunDirectory> RunWithAnUndeletedCheckpoint(const std::string& path) {
  auto run = std::make_unique<RunDirectory>(path);
  for (const int64_t step : {1, 2}) MakeCheckpoint(run.get(), step, "x");
  test::SetSyscallFault("unlinkat .step-00000001.deleted/file 1 EIO...");
  run->RotateCheckpoints(1, 2);
  test::SetSyscallFault("");
  return run;
}

TEST(RunDirectory, ACheckpointThatCannotBeDeletedIsAWarningThatSaysWhichAndWhy) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  const auto run = RunWithAnUndeletedCheckpoint(folder.path("run"));
  const std::string messages = testing::internal::GetCapturedStderr();
  EXPECT_THAT(messages, testing::AllOf(testing::HasSubstr("checkpoints/.step-00000001.deleted"),
                                       testing::HasSubstr("Input/output error")));
  EXPECT_THAT(run->CheckpointSteps(), testing::ElementsAre(2));
}

TEST(RunDirectory, ACheckpointThatCouldNotBeDeletedIsTriedAgain) {
  const TemporaryFolder folder;
  const auto run = RunWithAnUndeletedCheckpoint(folder.path("run"));
  ASSERT_TRUE(fs::exists(run->checkpoints_path() + "/.step-00000001.deleted/file"));
  run->RotateCheckpoints(0, 2);
  EXPECT_EQ(test::NamesIn(run->checkpoints_path()), std::set<std::string>{"step-00000002"});
}

TEST(RunDirectory, ACheckpointThatCannotBeDeletedKeepsNoProcessFromItsRun) {
  const TemporaryFolder folder;
  RunWithAnUndeletedCheckpoint(folder.path("run")).reset();
  test::SetSyscallFault("unlinkat .step-00000001.deleted/file 1 EIO...");
  const auto code = CodeOf([&] { RunDirectory(folder.path("run")); });
  test::SetSyscallFault("");
  EXPECT_EQ(code, std::nullopt);
}

TEST(RunDirectory, ACheckpointIsDeletedBesideAFormerOneOfItsStepThatCouldNotBe) {
  const TemporaryFolder folder;
  const auto run = RunWithAnUndeletedCheckpoint(folder.path("run"));
  MakeCheckpoint(run.get(), 1, "again");
  run->DeleteCheckpoint(1);
  EXPECT_EQ(test::NamesIn(run->checkpoints_path()),
            (std::set<std::string>{".step-00000001.deleted", "step-00000002"}));
}

TEST(RunDirectory, RotationSparesTheCheckpointJustWrittenBelowLaterOnes) {
  const TemporaryFolder folder;
  RunDirectory run(folder.path("run"));
  // The run fell back from broken checkpoints 20 and 30 to 10, and was saved at 15.
  for (const int64_t step : {10, 20, 30, 15}) MakeCheckpoint(&run, step, "x");
  run.RotateCheckpoints(1, 15);
  EXPECT_THAT(run.CheckpointSteps(), testing::ElementsAre(15, 20, 30));
  EXPECT_EQ(test::ReadFile(run.path() + "/latest/file"), "x");
}

TEST(RunDirectory, FindsTheRunWrittenToLast) {
  const TemporaryFolder folder;
  EXPECT_EQ(RunDirectory::Newest(folder.path("runs")), std::nullopt);
  const auto now = fs::file_time_type::clock::now();
  int age_s = 0;
  for (const char* name : {"b", "a", "c"}) {
    const RunDirectory run(folder.path("runs") + "/" + name);
    test::WriteFile(run.metrics_path(), "{}\n");
    fs::last_write_time(run.metrics_path(),
                        now - std::chrono::seconds(name == std::string("a") ? 0 : ++age_s));
  }
  EXPECT_EQ(RunDirectory::Newest(folder.path("runs")), folder.path("runs") + "/a");
}

}  // namespace
}  // namespace trainwright
