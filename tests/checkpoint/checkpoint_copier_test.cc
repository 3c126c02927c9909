#include "lib/checkpoint/checkpoint_copier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/codec/checkpoint_folder.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "tests/support/support.h"
#include "tests/support/syscall_faults/syscall_faults.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::CodeOf;
using test::TemporaryFolder;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

/// A folder with the files and metadata of a checkpoint.
std::string MakeCheckpoint(const std::string& parent, int64_t step,
                           const std::string& provenance = "one run") {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%08lld", static_cast<long long>(step));
  const std::string path = parent + "/" + name;
  fs::create_directories(path);
  std::vector<float> weights(5000);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(i) * 0.001f + static_cast<float>(step);
  AtomicFileSink sink(path + "/model.safetensors");
  WriteSafetensors(
      &sink, {{"w", "F32", {5000}, {reinterpret_cast<const uint8_t*>(weights.data()), weights.size() * 4}}},
      {{"format", "pt"}});
  sink.Commit();
  test::WriteFile(path + "/config.json", "{}");
  nlohmann::json metadata = {{"provenance", provenance}};
  for (const char* file : {"model.safetensors", "config.json"}) {
    const std::string content = test::ReadFile(path + "/" + file);
    metadata["files"][file] = {{"size_bytes", content.size()},
                               {"sha256", HexEncode(Sha256Of(AsBytes(content)))}};
  }
  test::WriteFile(path + "/metadata.json", metadata.dump());
  return path;
}

/// Names and contents of a folder's files, hidden ones too.
std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] =
        entry.is_directory() ? "" : test::ReadFile(entry.path().string());
  }
  return files;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class CopyTest : public testing::TestWithParam<bool> {
 protected:
  ~CopyTest() override { test::SetSyscallFault(""); }
  CopySettings Settings() const {
    return {.folder = folder_.path("target"), .compress = GetParam(), .first_wait_s = 0.01, .writer = "test"};
  }
  std::string NameOfCopy() const { return GetParam() ? "step-00000005.twc" : "step-00000005"; }
  /// What a copy restores to.
  std::map<std::string, std::string> Restored(const std::string& copy) const {
    if (!GetParam()) return FilesOf(copy);
    const std::string restored = folder_.path("restored");
    fs::remove_all(restored);
    RestoreFolder(copy, restored, {});
    return FilesOf(restored);
  }
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Forms, CopyTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "compressed" : "plain"; });

TEST_P(CopyTest, HasTheBytesOfTheCheckpoint) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5);
  CopyCheckpoint(checkpoint, Settings());
  EXPECT_THAT(NamesIn(folder_.path("target")), ElementsAre(NameOfCopy()));
  EXPECT_EQ(Restored(folder_.path("target/" + NameOfCopy())), FilesOf(checkpoint));
}

TEST_P(CopyTest, OfAnotherRunIsNotReplacedAndADamagedOneIs) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5);
  CopyCheckpoint(checkpoint, Settings());
  const std::string copy = folder_.path("target/" + NameOfCopy());
  const std::string other = MakeCheckpoint(folder_.path("other"), 5, "another run");
  test::WriteFile(other + "/config.json", "{ }");
  nlohmann::json metadata = nlohmann::json::parse(test::ReadFile(other + "/metadata.json"));
  metadata["files"]["config.json"]["sha256"] = HexEncode(Sha256Of(AsBytes(std::string("{ }"))));
  test::WriteFile(other + "/metadata.json", metadata.dump());
  EXPECT_EQ(CodeOf([&] { CopyCheckpoint(other, Settings()); }), ErrorCode::kUsage);
  EXPECT_EQ(Restored(copy), FilesOf(checkpoint));
  test::WriteFile(copy + "/config.json", "x");
  CopyCheckpoint(checkpoint, Settings());
  EXPECT_EQ(Restored(copy), FilesOf(checkpoint));
}

TEST_P(CopyTest, OfADamagedCheckpointIsRefused) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5);
  std::string weights = test::ReadFile(checkpoint + "/model.safetensors");
  weights[weights.size() - 7] ^= 1;
  test::WriteFile(checkpoint + "/model.safetensors", weights);
  EXPECT_EQ(CodeOf([&] { CopyCheckpoint(checkpoint, Settings()); }), ErrorCode::kIo);
  EXPECT_THAT(NamesIn(folder_.path("target")), IsEmpty());
}

TEST_P(CopyTest, AppearsWholeOrNotAtAllWhereverItIsKilledOrFails) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5), target = folder_.path("target");
  test::RecordSyscalls(target);
  CopyCheckpoint(checkpoint, Settings());
  const size_t calls = test::RecordedSyscalls().size();
  ASSERT_GT(calls, 10u);
  for (const char* action : {"KILL", "EIO", "ENOSPC..."}) {
    for (size_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(std::string(action) + " at call " + std::to_string(call));
      fs::remove_all(target);
      const std::string fault = "any " + target + " " + std::to_string(call) + " " + action;
      if (std::strcmp(action, "KILL") == 0) {
        const pid_t child = fork();
        if (child == 0) {
          test::SetSyscallFault(fault);
          CopyCheckpoint(checkpoint, Settings());
          _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
      } else {
        test::SetSyscallFault(fault);
        EXPECT_EQ(CodeOf([&] { CopyCheckpoint(checkpoint, Settings()); }), ErrorCode::kIo);
        test::SetSyscallFault("");
      }
      if (fs::exists(target + "/" + NameOfCopy())) {
        EXPECT_EQ(Restored(target + "/" + NameOfCopy()), FilesOf(checkpoint));
      }
      CopyCheckpoint(checkpoint, Settings());  // the next attempt cleans up
      EXPECT_THAT(NamesIn(target), ElementsAre(NameOfCopy()));
    }
  }
}

TEST_P(CopyTest, IsFinishedThoughASignalAskedToStop) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5);
  SetStopSignalForTest(SIGTERM);
  const auto code = CodeOf([&] { CopyCheckpoint(checkpoint, Settings()); });
  SetStopSignalForTest(0);
  EXPECT_EQ(code, std::nullopt);
  EXPECT_THAT(NamesIn(folder_.path("target")), ElementsAre(NameOfCopy()));
}

TEST_P(CopyTest, ThatIsAbandonedLeavesNothingBehind) {
  const std::string checkpoint = MakeCheckpoint(folder_.path(), 5);
  const std::atomic<bool> abandoned = true;
  EXPECT_EQ(CodeOf([&] { CopyCheckpoint(checkpoint, Settings(), &abandoned); }), ErrorCode::kIo);
  EXPECT_THAT(NamesIn(folder_.path("target")), IsEmpty());
}

TEST(CopyCommand, GetsThePathAsOneArgumentWhateverItsName) {
  const TemporaryFolder folder;
  const std::string checkpoint = MakeCheckpoint(folder.path("it's $(touch pwned) `touch pwned` ; \"x\""), 5);
  const std::string expected = fs::absolute(checkpoint).string() + "\n";
  CopyCheckpoint(checkpoint, {.command = "cd '" + folder.path() + "'; printf '%s\\n' > last"});
  CopyCheckpoint(checkpoint, {.command = "cd '" + folder.path() +
                                         "'; printf '%s\\n' \"$TRAINWRIGHT_CHECKPOINT\" > variable"});
  EXPECT_EQ(test::ReadFile(folder.path("last")), expected);
  EXPECT_EQ(test::ReadFile(folder.path("variable")), expected);
  EXPECT_FALSE(fs::exists(folder.path("pwned")));
}

TEST(CopyCommand, ThatFailsOrHangsSaysHow) {
  const TemporaryFolder folder;
  const std::string checkpoint = MakeCheckpoint(folder.path(), 5);
  EXPECT_THAT(
      test::MessageOf([&] { CopyCheckpoint(checkpoint, {.command = "echo no room >&2; exit 7; :"}); }),
      HasSubstr("ended with status 7: no room"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(
      test::MessageOf([&] { CopyCheckpoint(checkpoint, {.command = "sleep 60; :", .timeout_s = 0.2}); }),
      HasSubstr("did not end in time"));
  EXPECT_LT(SecondsSince(start), 30);
}

TEST(CheckpointCopier, TriesAgainAndTellsEveryFailure) {
  const TemporaryFolder folder;
  CheckpointCopier failing(
      {.command = "cd '" + folder.path() + "' && echo >> tries && [ $(wc -l < tries) -ge 3 ] && true",
       .retries = 1,
       .first_wait_s = 0.01});
  failing.Add(5, MakeCheckpoint(folder.path(), 5));
  failing.Finish();
  const std::vector<CopyResult> results = failing.TakeResults();
  ASSERT_EQ(results.size(), 2u) << "two attempts, and once more at the end";
  EXPECT_FALSE(results[0].copied);
  EXPECT_EQ(results[0].attempts, 2);
  EXPECT_THAT(results[0].problem, HasSubstr("ended with status 1"));
  EXPECT_TRUE(results[1].copied);
  EXPECT_THAT(failing.missing(), IsEmpty());
  EXPECT_THAT(failing.copied(), ElementsAre(5));
}

TEST(CheckpointCopier, ThatIsAbandonedKillsItsCommandAndLeavesOutTheRest) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  {
    CheckpointCopier copier(
        {.command = ": > '" + folder.path("running") + "'; : $TRAINWRIGHT_CHECKPOINT; sleep 60"});
    copier.Add(1, MakeCheckpoint(folder.path(), 1));
    copier.Add(2, MakeCheckpoint(folder.path(), 2));
    while (!fs::exists(folder.path("running"))) std::this_thread::yield();
    copier.Abandon();
    copier.Add(3, MakeCheckpoint(folder.path(), 3));
    EXPECT_THAT(copier.missing(), ElementsAre(1, 2, 3));
  }
  EXPECT_LT(SecondsSince(start), 30) << "the destructor waits for what is under way";
}

TEST(CheckpointCopier, WhatALookThrowsEndsTheWaitForCopies) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  {
    CheckpointCopier copier({.command = ": $TRAINWRIGHT_CHECKPOINT; sleep 60"});
    copier.Add(1, MakeCheckpoint(folder.path(), 1));
    int looks = 0;
    const auto look = [&] {
      if (++looks == 2) throw Error(ErrorCode::kIo, "rank 1", "killed");
    };
    EXPECT_EQ(CodeOf([&] { copier.Finish(look); }), ErrorCode::kIo);
    EXPECT_THAT(copier.missing(), ElementsAre(1));
  }
  EXPECT_LT(SecondsSince(start), 30);
}

TEST(CheckpointCopier, NeverWaitsAndTheOldestGivesWayUntilTheEnd) {
  const TemporaryFolder folder;
  CheckpointCopier copier({.command = "while [ ! -e '" + folder.path("go") +
                                      "' ]; do sleep 0.01; done; basename \"$TRAINWRIGHT_CHECKPOINT\" >> '" +
                                      folder.path("copied") + "'",
                           .retries = 0,
                           .capacity = 2});
  copier.Add(1, MakeCheckpoint(folder.path(), 1));
  while (copier.pinned().size() > 1) std::this_thread::yield();
  // Until `go` is there the command runs, so only the queue takes what is added.
  for (int64_t step = 2; step <= 6; ++step) copier.Add(step, MakeCheckpoint(folder.path(), step));
  EXPECT_GE(copier.gave_way(), 2);
  EXPECT_LE(copier.pinned().size(), 3u);
  EXPECT_THAT(copier.missing(), ElementsAre(1, 2, 3, 4, 5, 6));
  fs::remove_all(folder.path("step-00000003"));  // deleted before its turn came
  test::WriteFile(folder.path("go"), "");
  copier.Finish();
  EXPECT_THAT(copier.missing(), ElementsAre(3));
  EXPECT_THAT(copier.copied(), ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(copier.pinned(), IsEmpty());
}

}  // namespace
}  // namespace trainwright
