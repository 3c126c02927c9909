#include "lib/tok/sentencepiece_normalizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "lib/base/error.h"
#include "lib/tok/utf8.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using PieceType = SentencePieceModel::PieceType;
using test::Fixture;
using test::ReadFile;

SentencePieceModel ModelOf(const std::string& name) {
  SentencePieceModel model;
  std::string problem;
  EXPECT_TRUE(ParseSentencePieceModel(ReadFile(Fixture("tok/testdata/unigram/" + name + ".model")), &model,
                                      &problem));
  return model;
}

std::string Normalize(const SentencePieceModel& model, std::string_view text, bool mark = true) {
  std::string out = "what was there";
  SentencePieceNormalizer(model, "model").Normalize(text, mark, &out);
  return out;
}

/// No rules, and no mark.
SentencePieceModel PlainModel() {
  SentencePieceModel model;
  model.add_dummy_prefix = model.remove_extra_whitespaces = false;
  return model;
}

// NFKC with case folding, as Unicode defines them for these characters.
TEST(SentencePieceNormalizerTest, ReplacesByTheLongestRuleOfAModelsCharacterMap) {
  SentencePieceModel model = ModelOf("nmt-nfkc-cf");
  model.add_dummy_prefix = false;
  EXPECT_EQ(Normalize(model, "ABC\xEF\xBC\xA1"), "abca");
  EXPECT_EQ(Normalize(model, "E\xCC\x81t"), "\xC3\xA9t");                   // a base and its accent are one
  EXPECT_EQ(Normalize(model, "\xEF\xAC\x81x"), "fix");                      // U+FB01
  EXPECT_EQ(Normalize(model, "\xC3\x80\xD0\x96"), "\xC3\xA0\xD0\xB6");      // capital A with grave, ZHE
  EXPECT_EQ(Normalize(model, "\xEF\xBE\x8A\xEF\xBE\x9F"), "\xE3\x83\x91");  // half-width HA and its mark
  EXPECT_EQ(Normalize(model, "a\tb\xE3\x80\x80\n c"), "a b c");
}

TEST(SentencePieceNormalizerTest, RemovesSpacesAtBothEndsAndAllButTheFirstOfARun) {
  SentencePieceModel model = PlainModel();
  model.remove_extra_whitespaces = true;
  EXPECT_EQ(Normalize(model, "  a   b c  "), "a b c");
  EXPECT_EQ(Normalize(model, "    "), "");
  EXPECT_EQ(Normalize(model, "a\xE2\x96\x81 "), "a");  // the mark itself, as the library does
  model.remove_extra_whitespaces = false;
  EXPECT_EQ(Normalize(model, "  a   b "), "  a   b ");
}

TEST(SentencePieceNormalizerTest, PutsTheMarkWhereTheModelWantsItUnlessNothingIsLeft) {
  SentencePieceModel model = PlainModel();
  model.add_dummy_prefix = model.remove_extra_whitespaces = true;
  EXPECT_EQ(Normalize(model, " a "), " a");
  EXPECT_EQ(Normalize(model, " a ", /*mark=*/false), "a");
  EXPECT_EQ(Normalize(model, "  "), "");
  model.treat_whitespace_as_suffix = true;
  EXPECT_EQ(Normalize(model, " a "), "a ");
}

TEST(SentencePieceNormalizerTest, KeepsTheMarkOfATextOnlyWhereSpacesAreNotEscaped) {
  SentencePieceModel model = PlainModel();
  EXPECT_EQ(Normalize(model,
                      "a\xE2\x96\x81"
                      "b"),
            "a b");
  model.escape_whitespaces = false;
  EXPECT_EQ(Normalize(model,
                      "a\xE2\x96\x81"
                      "b c"),
            "a\xE2\x96\x81"
            "b c");
}

TEST(SentencePieceNormalizerTest, MakesAReplacementCharacterOfEachBadByte) {
  EXPECT_EQ(Normalize(PlainModel(), "a\xFF\xE2\x82 \xC3\xA9"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xC3\xA9");
}

TEST(SentencePieceNormalizerTest, LeavesUserDefinedPiecesAsTheyAre) {
  SentencePieceModel model = ModelOf("nmt-nfkc-cf");
  model.add_dummy_prefix = false;
  model.pieces.push_back({"<MASK>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"<M", 0, PieceType::kUserDefined});
  EXPECT_EQ(Normalize(model, "A<MASK>B<MAS"), "a<MASK>b<Mas");
}

/// The same, one look at the rules a step, as plainly as can be.
std::string NormalizePlainly(const SentencePieceModel& model, const CharacterMap& map,
                             std::string_view text) {
  const auto next = [&](std::string_view rest) -> std::pair<std::string, size_t> {
    size_t longest = 0;
    for (const SentencePieceModel::Piece& piece : model.pieces) {
      const bool is_here = piece.type == PieceType::kUserDefined && rest.starts_with(piece.text);
      if (is_here) longest = std::max(longest, piece.text.size());
    }
    if (longest > 0) return {std::string(rest.substr(0, longest)), longest};
    if (const auto match = map.Find(rest); match.size_bytes > 0) {
      return {std::string(match.replacement), match.size_bytes};
    }
    const size_t size = DecodeUtf8(rest).size_bytes;
    return size == 0 ? std::pair<std::string, size_t>("\xEF\xBF\xBD", 1)
                     : std::pair(std::string(rest.substr(0, size)), size);
  };
  while (!text.empty() && next(text).first == " ") text.remove_prefix(next(text).second);
  if (text.empty()) return "";
  std::string out;
  for (bool after_space = true; !text.empty();) {
    auto [made, size] = next(text);
    while (after_space && made.starts_with(' ')) made.erase(0, 1);
    if (!made.empty()) after_space = made.ends_with(' ');
    for (size_t mark; (mark = made.find("\xE2\x96\x81")) != std::string::npos;) made.replace(mark, 3, " ");
    out += made;
    text.remove_prefix(size);
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// Maps with bits turned over, which still are maps, have rules that no trainer makes: that end or begin
// within a character, that begin with ASCII characters, that make spaces.
TEST(SentencePieceNormalizerTest, GivesWhatALookAtEveryPlaceGivesWhateverTheRules) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    SentencePieceModel model = ModelOf(round % 2 == 0 ? "suffix" : "user-defined");
    model.add_dummy_prefix = false;
    const std::string sound = model.character_map;
    for (uint64_t flips = random() % 60; flips > 0; --flips) {
      std::string flipped = model.character_map;
      const size_t at = 4 + random() % (flipped.size() - 4);
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << random() % 8);
      CharacterMap map;
      if (CharacterMap::Read(flipped, &map).empty()) model.character_map = flipped;
    }
    compared += model.character_map != sound ? 1 : 0;
    CharacterMap map;
    ASSERT_EQ(CharacterMap::Read(model.character_map, &map), "");
    const SentencePieceNormalizer normalizer(model, "model");
    const std::vector<std::string> parts = {"a",
                                            " ",
                                            "A",
                                            "\xCC\x8A",
                                            "\xCC\x81",
                                            "e",
                                            "\xC3\xA9",
                                            "\xE3\x81\x8B",
                                            "\xE3\x82\x99",
                                            "\xEF\xBC\xA1",
                                            "\n",
                                            "\t",
                                            "\xE2\x84\xA6",
                                            "\xC2\xA0",
                                            "\xE2\x80\x8B",
                                            "\xE2\x96\x81",
                                            "000",
                                            "<mask>",
                                            "\xFF",
                                            "\xE3",
                                            "\xF0\x9F\x98\x80",
                                            "\xC2\xA8"};
    for (int i = 0; i < 20; ++i) {
      std::string text, out;
      for (uint64_t size = random() % 30; size > 0; --size) {
        text +=
            random() % 8 == 0 ? std::string(1, static_cast<char>(random())) : parts[random() % parts.size()];
      }
      normalizer.Normalize(text, /*mark=*/false, &out);
      ASSERT_EQ(out, NormalizePlainly(model, map, text))
          << "round " << round << ": " << testing::PrintToString(text);
    }
  }
  EXPECT_GT(compared, 100);
}

/// The size of a trie, the trie, the replacements.
std::string MapOf(std::vector<uint32_t> units, std::string_view replacements) {
  units.resize(256);
  const auto size = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string map(sizeof(size) + size, '\0');
  std::memcpy(map.data(), &size, sizeof(size));
  std::memcpy(map.data() + sizeof(size), units.data(), size);
  return map.append(replacements);
}

TEST(SentencePieceNormalizerTest, RefusesADamagedCharacterMapByName) {
  constexpr uint32_t kRoot = 1 << 10;  // its children begin at 1
  const std::string text("A\0", 2);
  std::vector<uint32_t> far_child = {kRoot}, no_leaf = {kRoot}, far_text = {kRoot}, bad_text = {kRoot};
  far_child.resize(256);
  far_child[7] = 1 << 20;
  no_leaf.resize(256);
  no_leaf[7] = 1 << 10 | 1 << 8;
  far_text.resize(256);
  far_text[7] = 1u << 31 | 2;
  bad_text.resize(256);
  bad_text[7] = 1u << 31;
  const struct {
    const char* expected;
    std::string map;
  } cases[] = {
      {"cut short", std::string(3, '\1')},
      {"cut short", MapOf({kRoot}, "")},
      {"odd size", std::string("\x04\0\0\0\0\0\0\0A\0", 10)},
      {"no end", MapOf({kRoot}, "A")},
      {"outside itself", MapOf({0}, text)},
      {"outside itself", MapOf({kRoot | 'a'}, text)},
      {"outside itself", MapOf(far_child, text)},
      {"outside itself", MapOf(no_leaf, text)},
      {"outside itself", MapOf(far_text, text)},
      {"not UTF-8", MapOf(bad_text, std::string("\xFF\0", 2))},
  };
  SentencePieceModel model = PlainModel();
  model.character_map = MapOf({kRoot}, text);
  EXPECT_EQ(Normalize(model, "a b"), "a b");
  for (const auto& test_case : cases) {
    model.character_map = test_case.map;
    const auto make = [&] { SentencePieceNormalizer(model, "odd.model"); };
    EXPECT_EQ(test::CodeOf(make), ErrorCode::kBadInput) << test_case.expected;
    const std::string message = test::MessageOf(make);
    EXPECT_NE(message.find(test_case.expected), std::string::npos) << message;
    EXPECT_NE(message.find("odd.model"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace trainwright
