#include "lib/jinja/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace trainwright::jinja {
namespace {

std::string RandomText(std::mt19937* random, size_t most) {
  std::string text(std::uniform_int_distribution<size_t>(0, most)(*random), 'a');
  for (char& c : text) c = std::bernoulli_distribution(0.2)(*random) ? 'b' : 'a';
  return text;
}

TEST(FindTest, FindsWhatALookAtEveryPlaceFinds) {
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = RandomText(&random, 80), sought = RandomText(&random, round % 40);
    EXPECT_EQ(FindFirst(text, sought), text.find(sought)) << text << " " << sought;
    EXPECT_EQ(FindLast(text, sought), text.rfind(sought)) << text << " " << sought;
    EXPECT_EQ(FindFirst(text, sought, 7), text.find(sought, 7)) << text << " " << sought;
  }
}

// A look at every place would take hours.
TEST(FindTest, LongTextsThatNearlyFitAreSearchedOnce) {
  const std::string text(40'000'000, 'a'), half(20'000'000, 'a');
  EXPECT_EQ(FindFirst(text, half + "b"), std::string::npos);
  EXPECT_EQ(FindLast(text, "b" + half), std::string::npos);
  EXPECT_EQ(FindLast(text, half), half.size());
}

TEST(StrippedTest, ALongSetIsThatOfItsCodePoints) {
  std::string set;
  for (int i = 0; i < 100; ++i) set += "xé";
  EXPECT_EQ(Stripped("éxaéxbxé", set, true, true), "aéxb");
  EXPECT_EQ(Stripped("éxaéxbxé", set, false, true), "éxaéxb");
  EXPECT_EQ(Stripped("\xA9x", set, true, false), "\xA9x");  // half of an é is none
}

TEST(NextLineTest, EndsWhereStrSplitlinesCuts) {
  const std::string text = "a\r\nb\n\rc\xE2\x80\xA8";
  std::vector<std::string> lines, with_ends;
  for (size_t at = 0; at < text.size();) lines.emplace_back(NextLine(text, false, &at));
  for (size_t at = 0; at < text.size();) with_ends.emplace_back(NextLine(text, true, &at));
  EXPECT_EQ(lines, (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(with_ends, (std::vector<std::string>{"a\r\n", "b\n", "\r", "c\xE2\x80\xA8"}));
}

}  // namespace
}  // namespace trainwright::jinja
