#include "lib/tok/sentencepiece_unigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "lib/base/error.h"
#include "lib/tok/sentencepiece_normalizer.h"
#include "lib/tok/sentencepiece_tokenizer.h"
#include "lib/tok/sentencepiece_version.h"
#include "lib/tok/utf8.h"
#include "tests/support/support.h"
#include "tests/tok/encode.h"
#include "tests/tok/random_documents.h"
#include "tests/tok/reference_unigram.h"
#include "tests/tok/sentencepiece_model_builder.h"

namespace trainwright {
namespace {

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;
using nlohmann::json;
using test::Encode;
using test::Fixture;
using test::ReadFile;

constexpr char kMark[] = "\xE2\x96\x81";

std::vector<uint32_t> Encode(const SentencePieceUnigram& unigram, std::string_view text) {
  SentencePieceUnigram::Scratch scratch;
  std::vector<uint32_t> ids;
  unigram.Encode(text, &scratch, &ids);
  return ids;
}

/// A model that takes text as it is.
SentencePieceModel EmptyModel() {
  SentencePieceModel model;
  model.remove_extra_whitespaces = model.add_dummy_prefix = false;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"<s>", 0, PieceType::kControl}};
  return model;
}

std::string HashOf(const std::vector<std::vector<uint32_t>>& lists) {
  test::Fnv hash;
  for (const std::vector<uint32_t>& ids : lists) hash.AddDocument(ids);
  return hash.hex();
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// The ids that scripts/make_unigram_fixtures.py recorded of SentencePiece 0.2.3.
class SentencePieceUnigramGoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<uint32_t> Ids(std::string_view text) const { return Encode(tokenizer_, text); }
  const json& expected() const { return goldens_["models"][GetParam()]; }

  const json goldens_ = json::parse(ReadFile(Fixture("tok/testdata/unigram/ids.json")));
  const SentencePieceTokenizer tokenizer_{
      ReadFile(Fixture("tok/testdata/unigram/" + std::string(GetParam()) + ".model")), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Models, SentencePieceUnigramGoldenTest,
                         ::testing::Values("nmt-nfkc-cf", "byte-fallback", "suffix", "no-prefix",
                                           "user-defined"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(SentencePieceUnigramGoldenTest, GivesTheIdsOfSentencePiece023ForWrittenDocuments) {
  ASSERT_EQ(tokenizer_.method(), "encoded by the suite itself");
  for (size_t i = 0; i < goldens_["written"].size(); ++i) {
    const std::string text = FromHex(goldens_["written"][i]);
    const auto ids = Ids(text);
    EXPECT_EQ(HashOf({ids}), expected()["written"][i])
        << "document " << i << ", " << Quoted(text) << ": " << testing::PrintToString(ids);
  }
}

TEST_P(SentencePieceUnigramGoldenTest, GivesTheIdsOfSentencePiece023ForRandomDocuments) {
  const auto texts = goldens_["texts"].get<std::vector<std::string>>();
  const auto count = goldens_["documents"].get<uint64_t>(),
             of_a_hash = goldens_["documents_per_hash"].get<uint64_t>();
  for (uint64_t begin = 0; begin < count; begin += of_a_hash) {
    std::vector<std::vector<uint32_t>> lists;
    for (uint64_t i = begin; i < begin + of_a_hash; ++i) {
      lists.push_back(Ids(test::RandomDocument(goldens_["seed"], i, texts)));
    }
    EXPECT_EQ(HashOf(lists), expected()["random"][begin / of_a_hash]) << "documents from " << begin << " on";
  }
}

// Its best sum is subtracted more than ten times on the way.
TEST_P(SentencePieceUnigramGoldenTest, GivesTheIdsOfSentencePiece023ForAWholeBookAsOneDocument) {
  const std::string book = ReadFile(Fixture("../examples/data/tinyshakespeare.txt"));
  EXPECT_EQ(HashOf({Ids(book)}), expected()["book"]);
}

/// Models of few characters, so that there are many ways to cut a text, and scores that often tie.
class RandomUnigram {
 public:
  explicit RandomUnigram(uint64_t seed) : random_(seed) {
    model_ = EmptyModel();
    model_.byte_fallback = Chance(2);
    model_.escape_whitespaces = !Chance(8);
    if (model_.byte_fallback) {
      const auto bytes = test::BytePieces();
      model_.pieces.insert(model_.pieces.end(), bytes.begin(), bytes.end());
    }
    const std::vector<std::string> all = {
        "a", "b", "c", space(), "\n", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80", "\xEF\xBF\xBD"};
    alphabet_.assign(all.begin(), all.begin() + 2 + static_cast<long>(random_() % (all.size() - 1)));
    scale_ = Chance(6) ? 20000.0F : Chance(2) ? 20.0F : 1.0F;
    tied_ = Chance(2);
    const bool unused = Chance(3), user_defined = Chance(3);
    std::set<std::string> texts;
    for (const std::string& character : alphabet_) {
      if (!Chance(8) && texts.insert(character).second) Add(character, PieceType::kNormal);
    }
    for (size_t count = 1 + random_() % 50; count > 0; --count) {
      std::string text;
      for (size_t size = 2 + random_() % 5; size > 0; --size) text += alphabet_[random_() % alphabet_.size()];
      if (!texts.insert(text).second) continue;
      Add(text, user_defined && Chance(12) ? PieceType::kUserDefined
                : unused && Chance(6)      ? PieceType::kUnused
                                           : PieceType::kNormal);
    }
  }
  const SentencePieceModel& model() const { return model_; }
  std::string space() const { return model_.escape_whitespaces ? kMark : " "; }

  std::string Document() {
    std::string text;
    for (size_t size = random_() % (Chance(10) ? 4000 : 60); size > 0; --size) {
      text += Chance(5) ? space() : Chance(20) ? "x" : alphabet_[random_() % alphabet_.size()];
    }
    return text;
  }

 private:
  bool Chance(uint64_t of) { return random_() % of == 0; }
  void Add(const std::string& text, PieceType type) {
    const auto part = static_cast<float>(random_() % (tied_ ? 5 : 1000000)) / (tied_ ? 5.0F : 1000000.0F);
    model_.pieces.push_back({text, -scale_ * part, type});
  }

  std::mt19937_64 random_;
  SentencePieceModel model_;
  std::vector<std::string> alphabet_;
  float scale_ = 1;
  bool tied_ = false;
};

TEST(SentencePieceUnigramTest, GivesTheIdsOfAPlainlyWrittenSearchForRandomModels) {
  SCOPED_TRACE(test::TestSeed());
  for (uint64_t round = 0; round < 300; ++round) {
    RandomUnigram random(test::TestSeed() * 1000003 + round);
    const SentencePieceUnigram unigram(random.model(), "random");
    const SentencePieceNormalizer normalizer(random.model(), "random");
    const test::ReferenceUnigram reference(random.model());
    SentencePieceUnigram::Scratch scratch;  // remembers units, which come again after other sums
    for (int i = 0; i < 20; ++i) {
      const std::string text = random.Document();
      std::string normalized;
      std::vector<uint32_t> ids;
      normalizer.Normalize(text, /*mark=*/false, &normalized);
      unigram.Encode(normalized, &scratch, &ids);
      ASSERT_EQ(ids, reference.Encode(text)) << "round " << round << ", document " << i;
    }
  }
}

// Golden ids of SentencePiece 0.2.3. In 0.2.1 they are {3, 2}: the float of the sum lies below it.
TEST(SentencePieceUnigramTest, OfEqualSumsTheLastPieceIsTheLongest) {
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({"0", -(1 + 0x3p-23F), PieceType::kNormal});
  model.pieces.push_back({"00", -2, PieceType::kNormal});
  EXPECT_EQ(Encode(SentencePieceUnigram(model, "tie"), "000"), (std::vector<uint32_t>{2, 3}));
}

// Golden ids of SentencePiece 0.2.3: -2/3 vanishes beside -300,000, and less so once sums have been reset.
TEST(SentencePieceUnigramTest, ResetsSumsBeyondAHundredThousand) {
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({"0", -60000, PieceType::kNormal});
  model.pieces.push_back({"a", -1 / 3.0F, PieceType::kNormal});
  model.pieces.push_back({"aa", -2 / 3.0F, PieceType::kNormal});
  const SentencePieceUnigram unigram(model, "reset");
  EXPECT_EQ(Encode(unigram, "00000aaa"), (std::vector<uint32_t>{2, 2, 2, 2, 2, 3, 3, 3}));
  std::vector<uint32_t> expected(500, 2);
  expected.insert(expected.end(), {3, 4});
  EXPECT_EQ(Encode(unigram, std::string(500, '0') + "aaa"), expected);
}

TEST(SentencePieceUnigramTest, MakesBytesOfAnUnknownMark) {
  SentencePieceModel model = EmptyModel();
  model.byte_fallback = true;
  const auto bytes = test::BytePieces();
  model.pieces.insert(model.pieces.end(), bytes.begin(), bytes.end());
  model.pieces.push_back({"a", -1, PieceType::kNormal});
  EXPECT_EQ(Encode(SentencePieceUnigram(model, "bytes"), " a"),
            (std::vector<uint32_t>{2 + 0xE2, 2 + 0x96, 2 + 0x81, 258}));
}

TEST(SentencePieceUnigramTest, MemoryIsThatOfTheLongestStretchAndNotOfTheText) {
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({"ab", -1, PieceType::kNormal});
  const SentencePieceUnigram unigram(model, "short");
  std::string text;
  while (text.size() < 1 << 20) text += "ab";
  SentencePieceUnigram::Scratch scratch;
  std::vector<uint32_t> ids;
  unigram.Encode(text, &scratch, &ids);
  EXPECT_EQ(ids.size(), text.size() / 2);
  EXPECT_LT(scratch.places.capacity(), 100u);
}

TEST(SentencePieceUnigramTest, RefusesModelsThatTheLibraryRefusesByName) {
  const struct {
    const char* expected;
    std::vector<Piece> pieces;
  } cases[] = {
      {"no finite number", {{"a", std::numeric_limits<float>::infinity(), PieceType::kNormal}}},
      {"no finite number", {{"a", std::nanf(""), PieceType::kNormal}}},
      {"is empty", {{"", -1, PieceType::kNormal}}},
      {"8,000 bytes", {{std::string(8000, 'a'), -1, PieceType::kNormal}}},
      {"NUL", {{std::string("a\0", 2), -1, PieceType::kNormal}}},
      {"\"a\" is there twice", {{"a", -1, PieceType::kNormal}, {"a", -2, PieceType::kUserDefined}}},
      {"no piece is a text", {}},
  };
  SentencePieceModel without_unknown = EmptyModel(), without_bytes = EmptyModel();
  without_unknown.pieces[0] = {"a", -1, PieceType::kNormal};
  without_bytes.pieces.push_back({"a", -1, PieceType::kNormal});
  without_bytes.byte_fallback = true;
  EXPECT_EQ(test::CodeOf([&] { SentencePieceUnigram(without_unknown, "m"); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { SentencePieceUnigram(without_bytes, "m"); }), ErrorCode::kBadInput);
  for (const auto& test_case : cases) {
    SentencePieceModel model = EmptyModel();
    model.pieces.insert(model.pieces.end(), test_case.pieces.begin(), test_case.pieces.end());
    const auto make = [&] { SentencePieceUnigram(model, "odd.model"); };
    EXPECT_EQ(test::CodeOf(make), ErrorCode::kBadInput) << test_case.expected;
    const std::string message = test::MessageOf(make);
    EXPECT_NE(message.find(test_case.expected), std::string::npos) << message;
    EXPECT_NE(message.find("odd.model"), std::string::npos) << message;
  }
}

// Converters write it beside byte pieces; the library leaves it out.
TEST(SentencePieceUnigramTest, LeavesOutAPieceThatIsANul) {
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({std::string("\0", 1), -1, PieceType::kUnused});
  model.pieces.push_back({"a", -1, PieceType::kNormal});
  const SentencePieceUnigram unigram(model, "nul");
  EXPECT_EQ(Encode(unigram, std::string("a\0a", 3)), (std::vector<uint32_t>{3, 0, 3}));
}

// Every prefix of a small model, and models with a bit turned over, all through the map of characters.
TEST(SentencePieceUnigramTest, ADamagedModelIsRefusedOrEncodesWithinItsVocabulary) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::string sound = ReadFile(Fixture("tok/testdata/unigram/suffix.model"));
  const std::string text = "The caf\xC3\xA9 \xEF\xBC\xA1\xEF\xBC\xA2 A\xCC\x8A \xFF  x\xE3\x80\x80 000";
  int encoded = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = sound;
    if (round % 3 == 0) damaged.resize(random() % sound.size());
    for (size_t flips = round % 3; flips > 0; --flips) {
      const size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
    }
    SentencePieceModel model;
    std::string problem;
    if (!ParseSentencePieceModel(damaged, &model, &problem)) continue;
    try {
      const SentencePieceNormalizer normalizer(model, "damaged");
      const SentencePieceUnigram unigram(model, "damaged");
      std::string normalized;
      normalizer.Normalize(text, /*mark=*/true, &normalized);
      ASSERT_EQ(FindInvalidUtf8(normalized), std::string_view::npos);
      for (const uint32_t id : Encode(unigram, normalized)) ASSERT_LT(id, model.pieces.size());
      ++encoded;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kBadInput) << error.what();
    }
  }
  EXPECT_GT(encoded, 100);
}

TEST(SentencePieceUnigramTest, GoesOnWithoutAMarkAsTheLibraryWithoutDummyPrefix) {
  const SentencePieceTokenizer tokenizer(ReadFile(Fixture("tok/testdata/unigram/byte-fallback.model")), "m");
  std::vector<uint32_t> continued, marked = Encode(tokenizer, "the king");
  tokenizer.EncodeContinued(" the king", &continued);
  EXPECT_EQ(continued, marked);
}

// Where the library is old, what it does with a tie is no fault of either; anything else is.
TEST(SentencePieceUnigramTest, ExplainsATieOfAnOldLibraryAndNothingElse) {
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({"0", -(1 + 0x3p-23F), PieceType::kNormal});
  model.pieces.push_back({"00", -2, PieceType::kNormal});
  model.pieces.push_back({"x", -2, PieceType::kNormal});
  const SentencePieceTokenizer tokenizer(test::SerializedModel(model), "tie");
  const auto reference = tokenizer.MakeReference();
  const auto ids = Encode(tokenizer, "000"), reference_ids = Encode(*reference, "000");
  EXPECT_EQ(ids, (std::vector<uint32_t>{2, 3}));
  const bool old = LibraryIsOlderThan022();
  EXPECT_EQ(reference_ids, old ? (std::vector<uint32_t>{3, 2}) : ids);
  EXPECT_EQ(reference->method() == "libsentencepiece (older than 0.2.2)", old) << reference->method();
  EXPECT_EQ(reference->IsTie(ids, std::vector<uint32_t>{3, 2}), old);
  EXPECT_FALSE(reference->IsTie(ids, std::vector<uint32_t>{2, 2, 2}));
  EXPECT_FALSE(reference->IsTie(ids, std::vector<uint32_t>{2, 4}));
  EXPECT_FALSE(tokenizer.IsTie(ids, std::vector<uint32_t>{3, 2}));
}

TEST(SentencePieceUnigramTest, AWrongCutInALongTextIsNoTie) {
  if (!LibraryIsOlderThan022()) GTEST_SKIP() << "the library cuts ties as the suite does";
  SentencePieceModel model = EmptyModel();
  model.pieces.push_back({"0", -3, PieceType::kNormal});
  model.pieces.push_back({"00", -2, PieceType::kNormal});
  model.pieces.push_back({"x", -2, PieceType::kNormal});
  const SentencePieceTokenizer tokenizer(test::SerializedModel(model), "tie");
  const auto reference = tokenizer.MakeReference();
  std::vector<uint32_t> ids(20000, 4), other = ids;
  ids.push_back(3);
  other.insert(other.end(), {2, 2});
  EXPECT_FALSE(reference->IsTie(ids, other));
  EXPECT_FALSE(reference->IsTie(other, ids));
  EXPECT_TRUE(reference->IsTie(ids, ids));
}

TEST(SentencePieceUnigramTest, TextThatGoesOnHasTheIdsOfTheLibrary) {
  for (const std::string name : {"byte-fallback", "nmt-nfkc-cf", "no-prefix", "suffix", "user-defined"}) {
    const SentencePieceTokenizer tokenizer(ReadFile(Fixture("tok/testdata/unigram/" + name + ".model")),
                                           name);
    const auto reference = tokenizer.MakeReference();
    for (const std::string text :
         {"", " ", "  ", "x", " x", "x ", "\tx", "  the  king ", "\xE2\x96\x81the"}) {
      std::vector<uint32_t> own, theirs;
      tokenizer.EncodeContinued(text, &own);
      reference->EncodeContinued(text, &theirs);
      EXPECT_EQ(own, theirs) << name << " '" << text << "'";
    }
  }
}

TEST(SentencePieceUnigramTest, PiecesThatContradictEachOtherAreRefusedByUnigramAndBpeModels) {
  const std::vector<std::vector<Piece>> bad = {
      {{"aa", 0, PieceType::kUserDefined}, {"aa", 0, PieceType::kUserDefined}},
      {{"a", 0, PieceType::kNormal}, {"a", 0, PieceType::kUserDefined}},
      {{"<0x-1>", 0, PieceType::kByte}},
      {{"<0x 1>", 0, PieceType::kByte}},
      {{"", 0, PieceType::kUserDefined}}};
  for (const bool is_bpe : {false, true}) {
    for (const std::vector<Piece>& pieces : bad) {
      SentencePieceModel model = EmptyModel();
      model.is_bpe = is_bpe;
      model.is_unigram = !is_bpe;
      model.remove_extra_whitespaces = true;
      model.pieces.push_back({"b", -1, PieceType::kNormal});
      model.pieces.insert(model.pieces.end(), pieces.begin(), pieces.end());
      EXPECT_EQ(test::CodeOf([&] { SentencePieceTokenizer(test::SerializedModel(model), "bad"); }),
                ErrorCode::kBadInput)
          << is_bpe << ' ' << pieces.front().text;
    }
  }
}

TEST(SentencePieceModelTest, APieceOfAByteIsTwoCapitalHexadecimalDigits) {
  EXPECT_EQ(ByteOfPiece("<0x41>"), 0x41);
  EXPECT_EQ(ByteOfPiece("<0xFF>"), 0xFF);
  for (const std::string text : {"<0x-1>", "<0x 1>", "<0xff>", "<0x4>", "<0x041>", "0x41", ""}) {
    EXPECT_EQ(ByteOfPiece(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace trainwright
