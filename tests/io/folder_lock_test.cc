#include "lib/io/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::TemporaryFolder;

TEST(FolderLockTest, ALinkInItsPlaceIsNotFollowed) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("elsewhere", folder.path(".lock"));
  EXPECT_EQ(CodeOf([&] { FolderLock lock(folder.path()); }), ErrorCode::kIo);
  EXPECT_FALSE(std::filesystem::exists(folder.path("elsewhere")));
}

TEST(FolderLockTest, TellsWhetherItIsHeldAndMakesNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(IsFolderInUse(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder.path(".lock")));
  {
    const FolderLock holder(folder.path());
    EXPECT_TRUE(IsFolderInUse(folder.path()));
    EXPECT_TRUE(IsFolderInUse(folder.path())) << "asking does not let go of it";
  }
  EXPECT_FALSE(IsFolderInUse(folder.path()));
}

TEST(FolderLockTest, WhoAsksWhetherItIsHeldKeepsNobodyFromTakingIt) {
  const TemporaryFolder folder;
  { const FolderLock made(folder.path()); }
  const int share = open(folder.path(".lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(share, LOCK_SH), 0);
  std::thread asker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close(share);
  });
  EXPECT_EQ(CodeOf([&] { FolderLock lock(folder.path()); }), std::nullopt);
  asker.join();
}

TEST(FolderLockTest, ASecondHolderIsRefusedUntilTheFirstIsGone) {
  const TemporaryFolder folder;
  {
    const FolderLock first(folder.path());
    EXPECT_EQ(CodeOf([&] { FolderLock second(folder.path()); }), ErrorCode::kUsage);
  }
  EXPECT_EQ(CodeOf([&] { FolderLock again(folder.path()); }), std::nullopt);
}

}  // namespace
}  // namespace trainwright
