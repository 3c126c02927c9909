#include "lib/retrieval/bm25.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/retrieval/word_cutter.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const TieOrder kRising = [](uint64_t a, uint64_t b) { return a < b; };

TEST(SearchWordsTest, AreRunsOfTwoWordCharactersInLowerCase) {
  EXPECT_THAT(SearchWords("The Cat's e-mail: x1, snake_case a b 42!"),
              testing::ElementsAre("cat", "mail", "x1", "snake_case", "42"));
  EXPECT_THAT(SearchWords("ÉTÉ Ñandú Ÿ\xC5\xB8 ŽIVOT ΛΌΓΟΣ ЛОЖЬ Ёлка"),
              testing::ElementsAre("été", "ñandú", "ÿÿ", "život", "λόγοσ", "ложь", "ёлка"));
  EXPECT_THAT(SearchWords("ab\xFF"
                          "cd 3×4×55 don’t"),
              testing::ElementsAre("ab", "cd", "55", "don"));
  EXPECT_THAT(SearchWords(""), testing::IsEmpty());
}

TEST(SearchWordsTest, LettersOfEveryScriptWithCasesAreInLowerCase) {
  EXPECT_THAT(SearchWords("ƯỚC MƠ Ễnh ẤP"), testing::ElementsAre("ước", "mơ", "ễnh", "ấp")) << "Vietnamese";
  EXPECT_THAT(SearchWords("ҐАНОК ҚАЛА ԵՐԵՎԱՆ ȘTIU"), testing::ElementsAre("ґанок", "қала", "երեվան", "știu"));
}

/// Of three documents of 2, 3 and 1 words, two have "cat".
TEST(Bm25Test, ScoresAsTheFormulaSays) {
  Bm25Index index({.k1 = 1.2, .b = 0.5});
  for (const char* text : {"cat dog", "cat cat fish", "bird"}) index.Add(text);
  const std::vector<ScoredRow> best = index.Search("cat", 10, kRising);
  ASSERT_EQ(best.size(), 2u) << "only documents with the word";
  const double idf = std::log(1 + 1.5 / 2.5);
  EXPECT_EQ(best[0].row, 1u);
  EXPECT_FLOAT_EQ(best[0].score, static_cast<float>(idf * 2 / (2 + 1.2 * (0.5 + 0.5 * 3 / 2))));
  EXPECT_EQ(best[1].row, 0u);
  EXPECT_FLOAT_EQ(best[1].score, static_cast<float>(idf * 1 / (1 + 1.2 * (0.5 + 0.5 * 2 / 2))));
}

TEST(Bm25Test, ARepeatedWordOfTheQueryCountsAgain) {
  Bm25Index index;
  for (const char* text : {"cat dog", "fish bird"}) index.Add(text);
  EXPECT_FLOAT_EQ(index.Search("cat cat", 1, kRising)[0].score, 2 * index.Search("cat", 1, kRising)[0].score);
}

TEST(Bm25Test, TheBestOfEqualScoresAreThoseOfTheOrder) {
  Bm25Index index;
  for (int i = 0; i < 5; ++i) index.Add("cat");
  index.Add("dog");
  const std::vector<ScoredRow> best = index.Search("cat", 2, [](uint64_t a, uint64_t b) { return a > b; });
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].row, 4u);
  EXPECT_EQ(best[1].row, 3u);
}

TEST(Bm25Test, OneSearchLeavesNothingForTheNext) {
  Bm25Index index;
  for (const char* text : {"cat dog", "fish bird"}) index.Add(text);
  const float first = index.Search("cat", 1, kRising)[0].score;
  EXPECT_EQ(index.Search("cat", 1, kRising)[0].score, first);
  EXPECT_THAT(index.Search("horse", 3, kRising), testing::IsEmpty());
  EXPECT_THAT(index.Search("the", 3, kRising), testing::IsEmpty());
}

class Bm25FixtureTest : public testing::Test {
 protected:
  const nlohmann::json fixture_ =
      nlohmann::json::parse(test::ReadFile(test::Fixture("retrieval/fixtures/bm25.json")));
};

TEST_F(Bm25FixtureTest, TextsAreCutAsBm25sCutsThem) {
  for (size_t i = 0; i < fixture_["queries"].size(); ++i) {
    EXPECT_EQ(nlohmann::json(SearchWords(fixture_["queries"][i].get<std::string>())), fixture_["words"][i]);
  }
}

TEST_F(Bm25FixtureTest, DocumentsScoreAsInBm25s) {
  Bm25Index index;
  for (const nlohmann::json& text : fixture_["texts"]) index.Add(text.get<std::string>());
  for (size_t i = 0; i < fixture_["queries"].size(); ++i) {
    std::vector<double> scores(index.size(), 0);
    for (const ScoredRow& row :
         index.Search(fixture_["queries"][i].get<std::string>(), index.size(), kRising)) {
      scores[row.row] = row.score;
    }
    for (size_t document = 0; document < scores.size(); ++document) {
      const double expected = fixture_["scores"][i][document].get<double>();
      EXPECT_NEAR(scores[document], expected, 1e-6 * (1 + expected)) << i << " " << document;
    }
  }
}

}  // namespace
}  // namespace trainwright
