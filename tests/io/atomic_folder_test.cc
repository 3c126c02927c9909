#include "lib/io/atomic_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::NamesIn;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

TEST(AtomicFolderTest, ReplacesTheOldFolderAtTheCommitAndLeavesNothingElse) {
  const TemporaryFolder folder;
  for (const char* content : {"old", "new"}) {
    AtomicFolder output(folder.path("out/"), /*replace=*/true);
    WriteFile(output.temporary() + "/file", content);
    output.Commit();
    EXPECT_EQ(ReadFile(folder.path("out/file")), content);
  }
  { const AtomicFolder given_up(folder.path("out"), /*replace=*/true); }
  EXPECT_EQ(ReadFile(folder.path("out/file")), "new");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"out"});
}

// In other containers the process has the same number, as here.
TEST(AtomicFolderTest, OfTwoWritersNeitherRemovesWhatTheOtherIsWriting) {
  const TemporaryFolder folder;
  for (const char* other : {"ckpt-10", "ckpt-1"}) {
    SCOPED_TRACE(other);
    AtomicFolder first(folder.path(other), /*replace=*/true);
    WriteFile(first.temporary() + "/file", "of the first");
    AtomicFolder second(folder.path("ckpt-1"), /*replace=*/true);
    WriteFile(second.temporary() + "/file", "of the second");
    second.Commit();
    EXPECT_EQ(ReadFile(folder.path("ckpt-1/file")), "of the second");
    ASSERT_TRUE(std::filesystem::exists(first.temporary() + "/file"));
    first.Commit();
    EXPECT_EQ(ReadFile(folder.path(other) + "/file"), "of the first");
  }
  EXPECT_EQ(NamesIn(folder.path()), (std::set<std::string>{"ckpt-1", "ckpt-10"}));
}

TEST(AtomicFolderTest, KilledWriterLeavesWhatTheNextOneOfTheSameNameRemoves) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const AtomicFolder output(folder.path("ckpt-1"), /*replace=*/false);
    WriteFile(output.temporary() + "/file", "half");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::set<std::string> left = NamesIn(folder.path());
  EXPECT_FALSE(left.empty());
  { const AtomicFolder another(folder.path("ckpt-10"), /*replace=*/false); }
  EXPECT_EQ(NamesIn(folder.path()), left);
  { const AtomicFolder again(folder.path("ckpt-1"), /*replace=*/false); }
  EXPECT_TRUE(NamesIn(folder.path()).empty());
}

/// What a writer leaves that was killed after the old folder made way, and before its own had the place.
void LeaveFolderThatMadeWay(const TemporaryFolder& folder) {
  const std::string temporary = folder.path(".ckpt-1.tmp-abcdefgh");
  WriteFile(temporary + ".lock", "");
  for (const char* end : {"", ".replaced"}) std::filesystem::create_directory(temporary + end);
  WriteFile(temporary + "/file", "new");
  WriteFile(temporary + ".replaced/file", "old");
}

TEST(AtomicFolderTest, AFolderThatMadeWayForOneThatDidNotArriveIsBroughtBack) {
  const TemporaryFolder folder;
  LeaveFolderThatMadeWay(folder);
  EXPECT_EQ(CodeOf([&] { AtomicFolder(folder.path("ckpt-1"), /*replace=*/false); }), ErrorCode::kUsage);
  EXPECT_EQ(ReadFile(folder.path("ckpt-1/file")), "old");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"ckpt-1"});
  // Where another has the place by now, it goes.
  WriteFile(folder.path("ckpt-1/file"), "newest");
  LeaveFolderThatMadeWay(folder);
  { const AtomicFolder given_up(folder.path("ckpt-1"), /*replace=*/true); }
  EXPECT_EQ(ReadFile(folder.path("ckpt-1/file")), "newest");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"ckpt-1"});
}

TEST(AtomicFolderTest, AReadOnlyFolderIsReplacedAndGone) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directories(folder.path("out/closed/inner"));
  WriteFile(folder.path("out/closed/inner/file"), "old");
  const fs::perms read_only = fs::perms::owner_read | fs::perms::owner_exec;
  for (const char* name : {"out/closed/inner", "out/closed", "out"}) {
    fs::permissions(folder.path(name), read_only);
  }
  AtomicFolder output(folder.path("out"), /*replace=*/true);
  WriteFile(output.temporary() + "/file", "new");
  output.Commit();
  EXPECT_EQ(ReadFile(folder.path("out/file")), "new");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"out"});
}

// As a file's link is.
TEST(AtomicFolderTest, ALinkToAFolderIsFollowed) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directories(folder.path("disk/out"));
  WriteFile(folder.path("disk/out/file"), "old");
  fs::create_directory_symlink("disk/out", folder.path("link"));
  EXPECT_EQ(CodeOf([&] { AtomicFolder(folder.path("link"), /*replace=*/false); }), ErrorCode::kUsage);
  AtomicFolder output(folder.path("link/"), /*replace=*/true);
  WriteFile(output.temporary() + "/file", "new");
  output.Commit();
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(ReadFile(folder.path("disk/out/file")), "new");
  EXPECT_EQ(NamesIn(folder.path()), (std::set<std::string>{"disk", "link"}));
  EXPECT_EQ(NamesIn(folder.path("disk")), std::set<std::string>{"out"});
}

}  // namespace
}  // namespace trainwright
