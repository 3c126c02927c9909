#include "lib/dist/gather.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

TEST(GatherTest, AllRanksGetTheWordsOfAllByRank) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<std::vector<int64_t>> given = {{-1, kLeast}, {0, 7}, {kLeast, -5}};
  const auto results = test::OnRanks(
      3, [&](World* world) { return GatherWords(world, given[static_cast<size_t>(world->rank())]); });
  for (const auto& result : results) EXPECT_EQ(result, given);
}

TEST(GatherTest, AllRanksGetTheBytesOfAllWhateverTheirLengths) {
  const std::vector<std::string> given = {"", std::string("a\0b", 3), "exactly8", "one more than eight"};
  const auto results = test::OnRanks(
      4, [&](World* world) { return GatherBytes(world, given[static_cast<size_t>(world->rank())]); });
  for (const auto& result : results) EXPECT_EQ(result, given);
}

TEST(GatherTest, RanksThatHaveNothingGetNothing) {
  const auto results = test::OnRanks(2, [&](World* world) { return GatherBytes(world, ""); });
  for (const auto& result : results) EXPECT_EQ(result, std::vector<std::string>(2));
}

TEST(GatherTest, OneRankHasItsOwn) {
  EXPECT_EQ(GatherBytes(Solo(), "own"), std::vector<std::string>{"own"});
}

}  // namespace
}  // namespace trainwright
