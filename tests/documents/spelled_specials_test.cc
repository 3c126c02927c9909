// Special tokens that data spell are cut, and no others.
#include "lib/documents/spelled_specials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwright {
namespace {

using Found = std::vector<std::pair<size_t, size_t>>;  // begins and sizes

/// What a tokenizer finds in a text: the leftmost, of those the longest, then on after it.
void FindSpecials(std::string_view text, const std::vector<std::string>& specials, size_t offset,
                  Found* found) {
  for (size_t at = 0; at < text.size();) {
    size_t longest = 0;
    for (const std::string& special : specials) {
      if (text.substr(at).starts_with(special)) longest = std::max(longest, special.size());
    }
    if (longest > 0) found->emplace_back(offset + at, longest);
    at += std::max<size_t>(longest, 1);
  }
}

/// What it finds in the pieces between the cuts.
Found FoundBetween(std::string_view text, const std::vector<std::string>& specials,
                   const std::vector<SpecialCut>& cuts) {
  Found found;
  size_t begin = 0;
  for (const SpecialCut& cut : cuts) {
    FindSpecials(text.substr(begin, cut.at - cut.unmatched - begin), specials, begin, &found);
    begin = cut.at;
  }
  FindSpecials(text.substr(begin), specials, begin, &found);
  return found;
}

TEST(SpelledSpecialsTest, TokenizersFindWhatIsLeftWhereTheDataAreBlank) {
  std::mt19937_64 random(1);
  const auto draw = [&](uint64_t below) { return random() % below; };
  const std::vector<std::string> letters = {"<", "a", ">", "▁", "^"};
  const auto text_of = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += letters[draw(letters.size())];
    return text;
  };
  size_t with_cuts = 0, unmatched = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> specials;
    for (uint64_t i = 0; i <= draw(4); ++i) specials.push_back(text_of(1 + draw(4)));
    std::string text, blank;
    std::vector<jinja::Span> data;
    for (uint64_t i = 0; i <= draw(8); ++i) {
      const std::string piece = text_of(1 + draw(4));
      if (i % 2 == 0) data.push_back({text.size(), text.size() + piece.size()});
      text += piece;
      blank += i % 2 == 0 ? std::string(piece.size(), '\0') : piece;
    }
    const std::vector<SpecialCut> cuts = SpelledSpecials(specials).CutsOf(text, data);
    Found expected;
    FindSpecials(blank, specials, 0, &expected);
    ASSERT_EQ(FoundBetween(text, specials, cuts), expected) << text;
    for (const SpecialCut& cut : cuts) {
      unmatched += cut.unmatched > 0 ? 1 : 0;
      ASSERT_TRUE(cut.at == text.size() || (static_cast<uint8_t>(text[cut.at]) & 0xC0) != 0x80)
          << "inside a character of " << text;
    }
    with_cuts += cuts.empty() ? 0 : 1;
  }
  EXPECT_GT(with_cuts, 1000u);
  EXPECT_GT(unmatched, 1000u);
}

TEST(SpelledSpecialsTest, TextThatSpellsNoneIsNotCut) {
  const SpelledSpecials specials({"<s>", "", "^"});
  EXPECT_TRUE(specials.CutsOf("<s> ^ <s", {{3, 4}, {5, 8}}).empty());
  EXPECT_EQ(specials.CutsOf("<s> ^", {{0, 5}}), (std::vector<SpecialCut>{{1, 0}, {5, 1}}));
}

}  // namespace
}  // namespace trainwright
