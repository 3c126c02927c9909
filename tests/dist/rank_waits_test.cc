#include "lib/dist/rank_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

TEST(RankWaits, AllRanksKnowHowLongEachHasWaited) {
  const auto told = test::OnRanks(3, [](World* world) {
    return WaitsOf(world->Agree(WaitAnswers(*world, 0.5 * static_cast<double>(world->rank()))));
  });
  for (const RankWaits& waits : told) EXPECT_THAT(waits.waits_s, testing::ElementsAre(0, 0.5, 1));
}

TEST(RankWaits, OneRankWaitsForNobody) {
  EXPECT_TRUE(WaitAnswers(*Solo(), 1).empty());
  EXPECT_FALSE(WaitsOf({}));
}

TEST(RankWaits, TheSlowestWaitsLeast) {
  EXPECT_EQ((RankWaits{{3, 0.5, 2}}).slowest(), 1);
  EXPECT_EQ((RankWaits{{3, 0.5, 0.5}}).slowest(), 1);
}

TEST(RankWaits, TheShareIsOfTheTimeOfAll) {
  EXPECT_DOUBLE_EQ((RankWaits{{3, 0, 3, 0}}).ShareOf(6), 0.25);
  EXPECT_EQ((RankWaits{{1, 1}}).ShareOf(0), 0);
  EXPECT_EQ((RankWaits{{9, 9}}).ShareOf(6), 1);  // waits that began before
}

TEST(RankWaits, AddUpByRank) {
  RankWaits all;
  all.Add({{1, 2}});
  all.Add({{0.5, 3}});
  EXPECT_THAT(all.waits_s, testing::ElementsAre(1.5, 5));
  all.Add({});
  EXPECT_THAT(all.waits_s, testing::ElementsAre(1.5, 5));
}

}  // namespace
}  // namespace trainwright
