#include "lib/io/atomic_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/support/support.h"

namespace trainwright {
namespace {

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

}  // namespace
}  // namespace trainwright
