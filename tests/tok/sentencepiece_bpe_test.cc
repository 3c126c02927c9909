#include "lib/tok/sentencepiece_bpe.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <random>
#include <set>

#include "lib/tok/sentencepiece_tokenizer.h"
#include "lib/tok/utf8.h"
#include "tests/support/support.h"
#include "tests/tok/encode.h"
#include "tests/tok/sentencepiece_model_builder.h"

namespace trainwright {
namespace {

using test::Encode;

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;

constexpr char kMark[] = "\xE2\x96\x81";

std::vector<uint32_t> EncodeByLibrary(const sentencepiece::SentencePieceProcessor& processor,
                                      std::string_view text) {
  std::vector<int> ids;
  EXPECT_TRUE(processor.Encode(text, &ids).ok());
  return {ids.begin(), ids.end()};
}

SentencePieceModel EmptyModel() {
  SentencePieceModel model;
  model.is_bpe = true;
  model.remove_extra_whitespaces = false;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"<s>", 0, PieceType::kControl}};
  return model;
}

/// Whether this suite encodes a model itself.
bool EncodesItself(const SentencePieceModel& model) {
  std::string problem;
  return SentencePieceBpe::Make(model, &problem) != nullptr;
}

/// Models of few characters, so that everything merges with everything; of pieces that no trainer would make.
class RandomModel {
 public:
  explicit RandomModel(uint64_t seed) : random_(seed) {
    model_ = EmptyModel();
    model_.byte_fallback = Chance(2);
    model_.add_dummy_prefix = !Chance(4);
    model_.treat_whitespace_as_suffix = Chance(4);
    model_.escape_whitespaces = !Chance(8);
    if (model_.byte_fallback) {
      const auto bytes = test::BytePieces();
      model_.pieces.insert(model_.pieces.end(), bytes.begin(), bytes.end());
    }
    const std::vector<std::string> all = {
        "a", "b", "c", kMark, "\n", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80", "\xEF\xBF\xBD"};
    alphabet_.assign(all.begin(), all.begin() + 2 + static_cast<long>(random_() % (all.size() - 1)));
    std::set<std::string> texts;
    const bool unused = Chance(4), ties = Chance(4), user_defined = Chance(2);
    for (const std::string& character : alphabet_) {
      if (Chance(8)) continue;  // known only as a part of pieces, or not at all
      texts.insert(character);
      Add(character, PieceType::kNormal, ties);
    }
    for (size_t count = random_() % 60; count > 0; --count) {
      std::string text;
      for (size_t size = 2 + random_() % 4; size > 0; --size) text += alphabet_[random_() % alphabet_.size()];
      if (!texts.insert(text).second) continue;
      Add(text,
          user_defined && Chance(12) ? PieceType::kUserDefined
          : unused && Chance(8)      ? PieceType::kUnused
                                     : PieceType::kNormal,
          ties);
    }
  }
  const SentencePieceModel& model() const { return model_; }

  std::string Document() {
    std::string text;
    const size_t size = Chance(16) ? random_() % 3000 : random_() % 40;
    const bool one_character = Chance(8);
    const std::string only = alphabet_[random_() % alphabet_.size()];
    for (size_t i = 0; i < size; ++i) {
      if (one_character && !Chance(50)) {
        text += only;
      } else if (Chance(5)) {
        text += ' ';
      } else if (Chance(30)) {
        text += static_cast<char>(random_());
      } else {
        text += alphabet_[random_() % alphabet_.size()];
      }
    }
    return text;
  }

 private:
  bool Chance(uint64_t of) { return random_() % of == 0; }
  void Add(const std::string& text, PieceType type, bool ties) {
    const float score = ties ? -static_cast<float>(random_() % 4) : -static_cast<float>(random_() % 1000000);
    model_.pieces.push_back({text, score, type});
  }

  std::mt19937_64 random_;
  SentencePieceModel model_;
  std::vector<std::string> alphabet_;
};

TEST(SentencePieceBpeTest, GivesTheLibrarysIdsForRandomModels) {
  SCOPED_TRACE(test::TestSeed());
  int by_itself = 0, documents = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    RandomModel random(test::TestSeed() * 1000003 + round);
    const std::string serialized = test::SerializedModel(random.model());
    sentencepiece::SentencePieceProcessor library;
    ASSERT_TRUE(library.LoadFromSerializedProto(serialized).ok()) << "round " << round;
    const SentencePieceTokenizer tokenizer(serialized, "random");
    by_itself += EncodesItself(random.model()) ? 1 : 0;
    for (int i = 0; i < 60; ++i, ++documents) {
      const std::string text = random.Document();
      ASSERT_EQ(Encode(tokenizer, text), EncodeByLibrary(library, text))
          << "round " << round << ", document " << i << ", by the " << tokenizer.method();
    }
  }
  // Those with unused pieces that can be made in several ways are left to the library.
  EXPECT_GT(by_itself, 300);
}

// Score ties are broken leftmost, whatever the pieces.
TEST(SentencePieceBpeTest, MergesTheLeftmostOfEqualScores) {
  SentencePieceModel model = EmptyModel();
  model.add_dummy_prefix = false;
  for (const char* text : {"a", "b", "ab", "ba", "aa"})
    model.pieces.push_back({text, -1, PieceType::kNormal});
  const SentencePieceTokenizer tokenizer(test::SerializedModel(model), "ties");
  ASSERT_TRUE(EncodesItself(model));
  EXPECT_EQ(Encode(tokenizer, "aba"), (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(Encode(tokenizer, "baa"), (std::vector<uint32_t>{5, 2}));
  EXPECT_EQ(Encode(tokenizer, "aaab"), (std::vector<uint32_t>{6, 4}));
}

TEST(SentencePieceBpeTest, MakesOneUnknownOfARunOfUnknownCharacters) {
  SentencePieceModel model = EmptyModel();
  model.add_dummy_prefix = false;
  model.pieces.push_back({"a", -1, PieceType::kNormal});
  const SentencePieceTokenizer tokenizer(test::SerializedModel(model), "unknown");
  ASSERT_TRUE(EncodesItself(model));
  EXPECT_EQ(Encode(tokenizer,
                   "axyz\nb\xFF"
                   "a\xE6\x97\xA5"),
            (std::vector<uint32_t>{2, 0, 2, 0}));
  EXPECT_EQ(Encode(tokenizer, std::string(5000, 'x')), (std::vector<uint32_t>{0}));
}

TEST(SentencePieceBpeTest, LeavesToTheLibraryWhatItDoesNotEncodeExactlyAndSaysWhy) {
  const struct {
    const char* expected;
    std::function<void(SentencePieceModel*)> change;
  } cases[] = {
      {"no BPE", [](SentencePieceModel* model) { model->is_bpe = false; }},
      {"several ways",
       [](SentencePieceModel* model) {
         for (const char* text : {"ab", "bc"}) model->pieces.push_back({text, -1, PieceType::kNormal});
         model->pieces.push_back({"abc", -2, PieceType::kUnused});
       }},
      {"special piece \"<s>\"",
       [](SentencePieceModel* model) {
         model->pieces.push_back({"<s>", -1, PieceType::kNormal});
       }},
      {"special piece \"#\"",
       [](SentencePieceModel* model) {
         model->pieces.push_back({"#", 0, PieceType::kControl});
       }},
      {"not a number",
       [](SentencePieceModel* model) {
         model->pieces.push_back({"ab", std::nanf(""), PieceType::kNormal});
       }},
      {"NUL",
       [](SentencePieceModel* model) {
         model->pieces.push_back({std::string("a\0b", 3), -1, PieceType::kNormal});
       }},
  };
  ASSERT_TRUE(EncodesItself(EmptyModel()));
  for (const auto& test_case : cases) {
    SentencePieceModel model = EmptyModel();
    test_case.change(&model);
    std::string problem;
    EXPECT_EQ(SentencePieceBpe::Make(model, &problem), nullptr) << test_case.expected;
    EXPECT_NE(problem.find(test_case.expected), std::string::npos) << problem;
  }
}

TEST(CharacterCutsTest, CutsOnlyWhereNoPieceHoldsBothNeighbours) {
  SentencePieceModel model = EmptyModel();
  model.byte_fallback = true;
  model.pieces.push_back({std::string(kMark) + "th", -1, PieceType::kNormal});
  model.pieces.push_back({"xy", -1, PieceType::kUserDefined});
  model.pieces.push_back({"pq", -1, PieceType::kUnused});
  model.pieces.push_back({"<0x0A>", -1, PieceType::kByte});
  const CharacterCuts cuts(model);
  EXPECT_FALSE(cuts.MayCut(' ', 't'));
  EXPECT_FALSE(cuts.MayCut(0x2581, 't'));
  EXPECT_FALSE(cuts.MayCut('t', 'h'));
  EXPECT_FALSE(cuts.MayCut('x', 'y'));
  EXPECT_FALSE(cuts.MayCut('p', 'q'));
  EXPECT_TRUE(cuts.MayCut('0', 'x'));
  EXPECT_TRUE(cuts.MayCut('h', 't'));
  EXPECT_TRUE(cuts.MayCut('h', ' '));
  EXPECT_TRUE(cuts.MayCut('\n', 0x65E5));
  EXPECT_TRUE(cuts.MayCut(0x10FFFF, 0x10FFFF));
}

TEST(CharacterCutsTest, FindsTheSameCutsInABlockAsBetweenTwo) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  RandomModel model(random());
  const CharacterCuts cuts(model.model());
  for (int round = 0; round < 2000; ++round) {
    char text[CharacterCuts::kBlock];
    for (char& byte : text) byte = "abc \nxyz\0\x7F"[random() % 10];
    const size_t ascii = random() % (2 * CharacterCuts::kBlock);
    if (ascii < CharacterCuts::kBlock) text[ascii] = static_cast<char>(0x80 | random());
    uint64_t expected = 0;
    for (size_t i = 1; i < std::min(ascii, CharacterCuts::kBlock); ++i) {
      const bool cut = cuts.MayCut(static_cast<uint8_t>(text[i - 1]), static_cast<uint8_t>(text[i]));
      expected |= uint64_t{cut} << i;
    }
    ASSERT_EQ(cuts.AsciiCuts(text), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace trainwright
