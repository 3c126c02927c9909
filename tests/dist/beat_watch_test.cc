#include "lib/dist/beat_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace trainwright {
namespace {

constexpr double kPatience_s = 30;

BeatWatch::Clock::time_point At(double time_s) {
  return BeatWatch::Clock::time_point(
      std::chrono::duration_cast<BeatWatch::Clock::duration>(std::chrono::duration<double>(time_s)));
}

/// Looks each 3 s while the beat of rank 1 changes and that of rank 2 stays the same.
std::vector<int64_t> LookUntil(double end_s, BeatWatch* watch) {
  std::vector<int64_t> silent;
  for (double time_s = 3; time_s <= end_s; time_s += 3)
    silent = watch->Silent({std::to_string(time_s), "5"}, At(time_s));
  return silent;
}

TEST(BeatWatchTest, ARankIsSilentOnceItsBeatStaysTheSameForLongerThanThePatience) {
  BeatWatch watch({1, 2}, kPatience_s, At(0));
  EXPECT_TRUE(LookUntil(33, &watch).empty());
  EXPECT_EQ(LookUntil(36, &watch), std::vector<int64_t>{2});
}

TEST(BeatWatchTest, AWatcherThatWasAwayGivesAllTheirTimeAnew) {
  BeatWatch watch({1, 2}, kPatience_s, At(0));
  LookUntil(12, &watch);
  EXPECT_TRUE(watch.Silent({"9", "5"}, At(500)).empty());
  EXPECT_TRUE(watch.Silent({"9", "5"}, At(510)).empty());
  EXPECT_TRUE(watch.Silent({"10", "5"}, At(520)).empty());
  EXPECT_EQ(watch.Silent({"11", "5"}, At(531)), std::vector<int64_t>{2});
}

}  // namespace
}  // namespace trainwright
