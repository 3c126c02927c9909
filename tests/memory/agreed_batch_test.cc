#include "lib/memory/agreed_batch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

/// A search that tried 1, 2, 4, ... and found the last but so many.
BatchSearch Found(int tried, int before_last) {
  BatchSearch search;
  for (int i = 0; i < tried; ++i) {
    search.points.push_back({.batch = int64_t{1} << i, .activation_bytes = 100 * tried + i});
  }
  if (before_last >= 0) search.chosen = search.points[static_cast<size_t>(tried - 1 - before_last)];
  return search;
}

/// The batch and the mark of the point that each rank is given.
std::vector<std::pair<int64_t, int64_t>> Agreed(const std::vector<BatchSearch>& searches) {
  return test::OnRanks(static_cast<int64_t>(searches.size()), [&](World* world) {
    const BatchPoint point = AgreeOnBatch(world, searches[static_cast<size_t>(world->rank())]);
    return std::pair(point.batch, point.activation_bytes);
  });
}

using AgreedPairs = std::vector<std::pair<int64_t, int64_t>>;

TEST(AgreedBatchTest, RanksTakeTheSmallestAndEachWhatItMeasuredWithIt) {
  EXPECT_EQ(Agreed({Found(5, 1), Found(3, 1), Found(4, 0)}), (AgreedPairs{{2, 501}, {2, 301}, {2, 401}}));
}

TEST(AgreedBatchTest, ARankThatCouldNotTellGivesItsLargest) {
  EXPECT_EQ(Agreed({Found(5, 0), Found(3, -1)}), (AgreedPairs{{4, 502}, {4, 302}}));
}

TEST(AgreedBatchTest, WhereOneCouldTryNoneThereIsNone) {
  EXPECT_EQ(Agreed({Found(5, 1), BatchSearch()}), (AgreedPairs{{0, 0}, {0, 0}}));
}

TEST(AgreedBatchTest, OneProcessTakesWhatItFound) {
  EXPECT_EQ(AgreeOnBatch(Solo(), Found(5, 1)).batch, 8);
}

}  // namespace
}  // namespace trainwright
