#include "lib/dist/run_in_world.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Writes down how it is left.
struct LeftWorld {
  void Close() {
    calls.push_back("close");
    if (close_fails) throw Error(ErrorCode::kIo, "rank 1", "killed or cut off");
  }
  void Fail(int status, const std::string& problem) {
    calls.push_back(std::to_string(status) + " " + problem);
  }
  std::vector<std::string> calls;
  bool close_fails = false;
};

using Calls = std::vector<std::string>;

TEST(RunInWorldTest, WorkThatIsDoneClosesTheWorldWhateverItsStatus) {
  for (const int status : {0, 1, 143}) {
    LeftWorld world;
    EXPECT_EQ(RunInWorld(&world, [&] { return status; }), status);
    EXPECT_EQ(world.calls, Calls{"close"});
  }
}

TEST(RunInWorldTest, AnErrorIsToldToTheOthersWithItsStatus) {
  LeftWorld world;
  const auto work = [&] {
    return RunInWorld(&world, []() -> int { throw Error(ErrorCode::kBadInput, "shards/", "is corrupt"); });
  };
  EXPECT_EQ(test::CodeOf(work), ErrorCode::kBadInput);
  EXPECT_EQ(world.calls, Calls{"3 shards/: is corrupt"});
}

TEST(RunInWorldTest, AnyExceptionIsTold) {
  LeftWorld world;
  EXPECT_THROW(RunInWorld(&world, []() -> int { throw std::runtime_error("first line\nand a stack trace"); }),
               std::runtime_error);
  EXPECT_EQ(world.calls, Calls{"70 internal error: first line"});
}

TEST(RunInWorldTest, ARankThatIsGoneAtTheEndIsAnError) {
  LeftWorld world;
  world.close_fails = true;
  EXPECT_EQ(test::CodeOf([&] { RunInWorld(&world, [] { return 0; }); }), ErrorCode::kIo);
  EXPECT_EQ(world.calls, (Calls{"close", "4 rank 1: killed or cut off"}));
}

}  // namespace
}  // namespace trainwright
