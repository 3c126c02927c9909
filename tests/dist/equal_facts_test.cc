#include "lib/dist/equal_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What each rank throws.
std::vector<std::optional<Error>> Compare(const std::vector<Facts>& facts) {
  return test::OnRanks(static_cast<int64_t>(facts.size()), [&](World* world) {
    std::optional<Error> thrown;
    try {
      RequireEqual(world, facts[static_cast<size_t>(world->rank())]);
    } catch (const Error& error) {
      thrown = error;
    }
    return thrown;
  });
}

TEST(EqualFactsTest, EqualOnesPass) {
  const Facts facts = {{"build", "2.11"}, {"data", ""}};
  for (const auto& thrown : Compare({facts, facts, facts})) EXPECT_FALSE(thrown);
}

TEST(EqualFactsTest, TheRankThatDiffersSaysHowAndTheOthersNameIt) {
  const auto thrown = Compare({{{"build", "2.11"}}, {{"build", "2.11"}}, {{"build", "2.10"}}});
  for (const auto& one : thrown) ASSERT_TRUE(one);
  EXPECT_EQ(thrown[2]->code(), ErrorCode::kUsage);
  for (const size_t rank : {0, 1}) EXPECT_EQ(thrown[rank]->code(), ErrorCode::kIo);
  for (const auto& one : thrown) {
    EXPECT_THAT(one->what(),
                AllOf(HasSubstr("rank 2"), HasSubstr("build"), HasSubstr("2.10"), HasSubstr("2.11")));
  }
}

TEST(EqualFactsTest, TheCodeOfTheRankThatDiffersAndTheHintAreTheCallers) {
  const auto thrown = test::OnRanks(2, [](World* world) {
    std::optional<Error> error;
    try {
      RequireEqual(world, {{"data", std::to_string(world->rank())}},
                   {.code = ErrorCode::kBadInput, .hint = "look at it"});
    } catch (const Error& caught) {
      error = caught;
    }
    return error;
  });
  for (const auto& one : thrown) ASSERT_TRUE(one);
  EXPECT_EQ(thrown[0]->code(), ErrorCode::kIo);
  EXPECT_EQ(thrown[1]->code(), ErrorCode::kBadInput);
  for (const auto& one : thrown) EXPECT_EQ(one->hint(), "look at it");
}

TEST(EqualFactsTest, AFactThatOneRankLacksDiffers) {
  const auto thrown = Compare({{{"build", "2.11"}}, {}});
  ASSERT_TRUE(thrown[1]);
  EXPECT_THAT(thrown[1]->what(), AllOf(HasSubstr("none"), HasSubstr("2.11")));
}

}  // namespace
}  // namespace trainwright
