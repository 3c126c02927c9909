// Which copies of shards make way for another in a --cache-dir.
#include "lib/loading/copy_retirement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::NamesIn;
using test::TemporaryFolder;
using test::WriteFile;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CopyRetirementTest : public testing::Test {
 protected:
  /// A copy of 1000 bytes that was used so many days ago.
  std::string Add(char digit, int days) const {
    const std::string path = folder_.path(CopyName(std::string(64, digit)));
    WriteFile(path, std::string(1000, 'x'));
    SetUse(path, days);
    return path;
  }
  static void SetUse(const std::string& path, int days) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
  }
  std::set<std::string> Names() const { return NamesIn(folder_.path("")); }
  static std::string Name(char digit) { return CopyName(std::string(64, digit)); }

  const TemporaryFolder folder_;
};

TEST_F(CopyRetirementTest, ForgottenCopiesGoAndNothingElse) {
  Add('a', 31);
  Add('b', 29);
  for (const char* const other : {"mine.tws", "trainwright-notes.tws", "trainwright-0123456789abcdeg.tws",
                                  "trainwright-0123456789abcdef.tws.bak"}) {
    WriteFile(folder_.path(other), "x");
    SetUse(folder_.path(other), 100);
  }
  RetireCopies(folder_.path(""), 10, 1000);
  EXPECT_THAT(Names(), UnorderedElementsAre(Name('b'), "mine.tws", "trainwright-notes.tws",
                                            "trainwright-0123456789abcdeg.tws",
                                            "trainwright-0123456789abcdef.tws.bak"));
}

TEST_F(CopyRetirementTest, ThoseUnusedTheLongestMakeRoomAndNoMoreThanAreNeeded) {
  Add('a', 3);
  Add('b', 5);
  Add('c', 1);
  RetireCopies(folder_.path(""), 1500, 1500);
  EXPECT_EQ(Names().size(), 3u) << "there was room";
  RetireCopies(folder_.path(""), 1500, 400);
  EXPECT_THAT(Names(), UnorderedElementsAre(Name('c')));
  RetireCopies(folder_.path(""), 9000, 0);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CopyRetirementTest, ACopyInUseStaysAndItsUseIsNoted) {
  const std::string kept = Add('a', 40);
  Add('b', 2);
  KeepInUse(kept);
  EXPECT_LT(std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(kept),
            std::chrono::hours(1));
  SetUse(kept, 40);
  RetireCopies(folder_.path(""), 9000, 0);
  EXPECT_THAT(Names(), UnorderedElementsAre(Name('a')));
  RetireCopies(folder_.path("none"), 9000, 0);  // a folder that is not there holds none
}

}  // namespace
}  // namespace trainwright
