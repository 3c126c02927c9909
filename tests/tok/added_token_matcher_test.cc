#include "lib/tok/added_token_matcher.h"

#include <gtest/gtest.h>

#include <string>

namespace trainwright {
namespace {

TEST(WhiteSpaceRunsTest, AManyTimesAskedRunIsReadOnce) {
  const std::string text = std::string(1000, ' ') + "word \t\n";
  WhiteSpaceRuns runs(text);
  for (size_t begin = 0; begin < 1000; ++begin) EXPECT_EQ(runs.EndOf(begin), 1000);
  EXPECT_EQ(runs.characters_read(), 1000);
  EXPECT_EQ(runs.EndOf(1000), 1000);
  EXPECT_EQ(runs.EndOf(1004), text.size());
  EXPECT_EQ(runs.EndOf(1006), text.size());
  EXPECT_EQ(runs.EndOf(text.size()), text.size());
  EXPECT_EQ(runs.characters_read(), 1003);
}

TEST(WhiteSpaceRunsTest, SpacesOfSeveralBytesAreSpaces) {
  const std::string text = "\u3000\u00a0\u2003x";
  WhiteSpaceRuns runs(text);
  EXPECT_EQ(runs.EndOf(0), text.size() - 1);
  EXPECT_EQ(runs.EndOf(3), text.size() - 1);
  EXPECT_EQ(runs.characters_read(), 3);
}

// Where each token went through the run anew this took some 10^13 characters.
TEST(AddedTokenMatcherTest, TokensOfSpacesThatStripSpacesTakeLinearTime) {
  const std::string text(std::size_t{1} << 22, ' ');
  for (const bool left : {false, true}) {
    const std::vector<AddedToken> tokens = {
        {.pattern = " ", .id = 7, .left_strip = left, .right_strip = !left, .normalized = false}};
    const AddedTokenMatcher matcher(tokens, /*normalized=*/false);
    size_t parts = 0;
    bool whole = true;
    matcher.Cut(text, [&](const AddedTokenMatcher::Part& part) {
      whole = whole && part.begin == parts && part.end == (left ? parts + 1 : text.size());
      ++parts;
    });
    EXPECT_EQ(parts, text.size());
    EXPECT_TRUE(whole);
  }
}

}  // namespace
}  // namespace trainwright
