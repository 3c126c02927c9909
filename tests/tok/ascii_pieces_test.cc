#include "lib/tok/ascii_pieces.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "lib/tok/unicode.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Texts in which what cuts depend on is dense: runs of one kind, white space of all kinds, contractions.
std::string DenseText(std::mt19937_64& random) {
  static constexpr const char* kParts[] = {
      "a",    "B",        "word",         " ",        "  ",   "\n",       "\r\n", "\t",
      "\v",   "1",        "23",           "4567",     ".",    "...",      "!",    "'",
      "'s",   "'S",       "'re",          "'Ll",      "'d",   "don't",    "-",    "\x01",
      "\x7f", "\xc3\xa9", "\xe2\x80\x83", "\xc5\xbf", "\xff", "\xd9\xa3", "_"};
  std::string text;
  const size_t kinds = 1 + random() % std::size(kParts);  // few kinds make long runs
  while (text.size() < 200)
    text += kParts[random() % 2 == 0 ? random() % std::size(kParts) : random() % kinds];
  return text;
}

TEST(AsciiBlockTest, EveryVersionGivesTheBitsOfTheOneThatLooksAtByteAfterByte) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto versions = SupportedReadAsciiBlocks();
  for (int round = 0; round < 2000; ++round) {
    char bytes[AsciiBlock::kBytes];
    const uint64_t few = random() % 2 == 0 ? 0xFF : 0x7F;
    for (char& byte : bytes) byte = static_cast<char>(random() & few);
    const AsciiBlock expected = versions[0](bytes);
    for (size_t i = 1; i < versions.size(); ++i) ASSERT_EQ(versions[i](bytes), expected) << "version " << i;
  }
  for (int byte = 0; byte < 256; ++byte) {
    char bytes[AsciiBlock::kBytes] = {};
    std::fill(std::begin(bytes), std::end(bytes), static_cast<char>(byte));
    for (const auto version : versions) ASSERT_EQ(version(bytes), versions[0](bytes)) << "byte " << byte;
  }
}

template <CutRule rule>
void ExpectTheEndsOfPieceEnd() {
  std::mt19937_64 random(test::TestSeed());
  const auto read = SupportedReadAsciiBlocks().back();
  uint64_t ends_given = 0, pieces = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string text = DenseText(random);
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    for (size_t begin = 0; begin + AsciiBlock::kBytes <= text.size();) {
      const char* const bytes = text.data() + begin;
      size_t at = begin;
      for (uint64_t ends = AsciiPieceEnds<rule>(read(bytes), bytes); ends != 0; ends &= ends - 1) {
        at = PieceEnd(rule, text, at, CharacterClasses());
        ASSERT_EQ(at - begin, static_cast<size_t>(std::countr_zero(ends)))
            << testing::PrintToString(text.substr(begin));
        ++ends_given;
      }
      begin = PieceEnd(rule, text, begin, CharacterClasses());
      ++pieces;
    }
  }
  EXPECT_GT(ends_given, 4 * pieces);  // it is of use
}

TEST(AsciiPieceEndsTest, AreThoseOfPieceEndForGpt2) {
  ExpectTheEndsOfPieceEnd<CutRule::kGpt2>();
}
TEST(AsciiPieceEndsTest, AreThoseOfPieceEndForLlama3) {
  ExpectTheEndsOfPieceEnd<CutRule::kLlama3>();
}
TEST(AsciiPieceEndsTest, AreThoseOfPieceEndForQwen2) {
  ExpectTheEndsOfPieceEnd<CutRule::kQwen2>();
}
TEST(AsciiPieceEndsTest, AreThoseOfPieceEndForCl100k) {
  ExpectTheEndsOfPieceEnd<CutRule::kCl100k>();
}

TEST(AsciiPieceEndsTest, LeavesOutNothingOfPlainTextAndCodeButItsLastBytes) {
  for (const std::string text :
       {"It's the 3rd of 1,234 \"short\" lines; don't cut them, she said. End",
        "int f() {\n    return a[12];\n\n}\n\n  // said\n\tif (x) y();\n  z = 1 ;  "}) {
    uint64_t expected = 0;
    for (size_t at = 0; (at = PieceEnd(CutRule::kLlama3, text, at, CharacterClasses())) < 60;)
      expected |= uint64_t{1} << at;
    const AsciiBlock block = SupportedReadAsciiBlocks().back()(text.data());
    const uint64_t ends = AsciiPieceEnds<CutRule::kLlama3>(block, text.data());
    EXPECT_EQ(ends & ((uint64_t{1} << 60) - 1), expected) << text;
  }
}

}  // namespace
}  // namespace trainwright
