#include "lib/tok/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "lib/base/error.h"
#include "lib/tok/folder_special_tokens.h"
#include "lib/tok/utf8.h"
#include "tests/support/support.h"
#include "tests/tok/encode.h"
#include "tests/tok/library_oracle.h"
#include "tests/tok/sentencepiece_model_builder.h"

namespace trainwright {
namespace {

using test::Encode;
using test::Fixture;
using test::ReadFile;

std::string ModelPath(const std::string& name) {
  return name == "mistral-v1" ? Fixture("../examples/data/mistral-v1.model")
                              : Fixture("tok/testdata/" + name + ".model");
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// The library finds out at the first text that holds the letter.
TEST(SentencePieceModelErrorTest, AModelThatCannotEncodeATextIsBadInput) {
  SentencePieceModel model;
  model.is_bpe = true;
  model.add_dummy_prefix = model.remove_extra_whitespaces = false;
  model.pieces = {{"<unk>", 0, SentencePieceModel::PieceType::kUnknown},
                  {"o", 0, SentencePieceModel::PieceType::kControl},
                  {"a", -1, SentencePieceModel::PieceType::kNormal}};
  const SentencePieceTokenizer tokenizer(test::SerializedModel(model), "odd.model");
  EXPECT_EQ(Encode(tokenizer, "a").size(), 1u);
  try {
    Encode(tokenizer, "ao");
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_FALSE(error.hint().empty());
  }
}

class SentencePieceModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  SentencePieceTokenizer tokenizer_{ReadFile(ModelPath(GetParam())), GetParam()};
  test::LibraryOracle reference_{ReadFile(ModelPath(GetParam()))};
};

INSTANTIATE_TEST_SUITE_P(Models, SentencePieceModelTest,
                         ::testing::Values("mistral-v1", "mistral-v3", "unigram-1k"), [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// In protobuf it is another field, an unknown one.
TEST(SentencePieceModelErrorTest, AFieldOfAnotherWireTypeIsPassedOverAsByTheLibrary) {
  const std::string model = ReadFile(ModelPath("mistral-v1"));
  for (const std::string& odd :
       {std::string("\x08\x05", 2) + model, std::string("\x0d\x01\x02\x03\x04", 5) + model,
        model + std::string("\x1a\x03\x1a\x01\x00", 5), model + std::string("\x12\x06\x9d\x02\0\0\0\0", 8)}) {
    const SentencePieceTokenizer tokenizer(odd, "odd");
    const auto reference = tokenizer.MakeReference();
    for (const std::string text : {"a text", "  two\n \u00e9\U0001F600", "x"}) {
      std::vector<uint32_t> ids, expected;
      tokenizer.Encode(text, &ids);
      reference->Encode(text, &expected);
      EXPECT_EQ(ids, expected) << testing::PrintToString(odd.substr(0, 8)) << text;
    }
  }
}

TEST_P(SentencePieceModelTest, GivesThePythonLibrarysIdsAndTextForTheEdgeCases) {
  const auto golden = nlohmann::json::parse(ReadFile(Fixture("tok/testdata/golden_ids.json")));
  ASSERT_GT(golden["cases"].size(), 40u);
  for (const auto& test_case : golden["cases"]) {
    SCOPED_TRACE(test_case["shown"].get<std::string>());
    const auto expected = test_case[GetParam()]["ids"].get<std::vector<uint32_t>>();
    EXPECT_EQ(Encode(tokenizer_, FromHex(test_case["hex"])), expected);
    EXPECT_EQ(tokenizer_.Decode(expected), FromHex(test_case[GetParam()]["decoded_hex"]));
  }
}

TEST_P(SentencePieceModelTest, GivesTheLibrarysIdsForRandomBytes) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const bool mostly_ascii = round % 2 == 0;
    std::string text(random() % 2000, ' ');
    for (char& byte : text)
      byte = static_cast<char>(mostly_ascii && random() % 16 != 0 ? 32 + random() % 90 : random());
    ASSERT_EQ(Encode(tokenizer_, text), reference_.Encode(text)) << "round " << round;
  }
}

// Long enough to be cut into parts, of pieces where a cut in the wrong place shows: runs of spaces, of one
// letter, of bad bytes, of characters of every size, user-defined symbols.
TEST_P(SentencePieceModelTest, GivesTheLibrarysIdsForLongDocuments) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::vector<std::string> parts = {" ",
                                          "  ",
                                          "a",
                                          "the ",
                                          "ing",
                                          "e",
                                          "\n",
                                          "\xE2\x96\x81",
                                          "\xF0\x9F\x98\x80",
                                          "\xE6\x97\xA5",
                                          "\xC3\xA9",
                                          "\xFF",
                                          "\xE2\x82",
                                          "[REFERENCE_DOC_3]",
                                          "[REFERENCE_DOC_",
                                          "=",
                                          "==",
                                          ">",
                                          "    ",
                                          "\xCC\x81",
                                          "\t",
                                          "1",
                                          "Hello"};
  for (int round = 0; round < 12; ++round) {
    std::string text;
    const size_t kinds = 1 + random() % parts.size(), size = 40000 + random() % 60000;
    const size_t first = random() % parts.size();
    while (text.size() < size) text += parts[(first + random() % kinds) % parts.size()];
    const auto expected = reference_.Encode(text);
    ASSERT_EQ(Encode(tokenizer_, text), expected) << "round " << round;
    ASSERT_EQ(tokenizer_.Decode(expected), reference_.Decode(expected)) << "round " << round;
  }
}

TEST_P(SentencePieceModelTest, GivesTheLibrarysIdsAndTextForAWholeBookAsOneDocument) {
  const std::string text = ReadFile(Fixture("../examples/data/tinyshakespeare.txt"));
  const auto ids = Encode(tokenizer_, text);
  ASSERT_EQ(ids, reference_.Encode(text));
  EXPECT_EQ(tokenizer_.Decode(ids), reference_.Decode(ids));
}

TEST_P(SentencePieceModelTest, AppendsToTheIdsThatAreThere) {
  std::vector<uint32_t> ids = {7};
  tokenizer_.Encode("Hello", &ids);
  EXPECT_EQ(ids[0], 7u);
  EXPECT_EQ(std::vector<uint32_t>(ids.begin() + 1, ids.end()), reference_.Encode("Hello"));
}

TEST_P(SentencePieceModelTest, SurvivesItsIdentity) {
  const auto again = TokenizerFromIdentity(tokenizer_.identity());
  EXPECT_EQ(again->identity(), tokenizer_.identity());
  EXPECT_EQ(Encode(*again, "Hello there"), Encode(tokenizer_, "Hello there"));
}

TEST_P(SentencePieceModelTest, RefusesIdsOutsideTheVocabulary) {
  const std::vector<uint32_t> ids = {tokenizer_.identity().vocab_size};
  EXPECT_EQ(test::CodeOf([&] { tokenizer_.Decode(ids); }), ErrorCode::kBadInput);
}

// Facts of the models' protobufs.
TEST(SentencePieceIdentityTest, HasTheModelsHashSizeAndSpecialIds) {
  const auto tokenizer = LoadTokenizer(ModelPath("mistral-v1"));
  const TokenizerIdentity& identity = tokenizer->identity();
  EXPECT_EQ(identity.kind, "sentencepiece");
  EXPECT_EQ(HexEncode(identity.sha256), "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055");
  EXPECT_EQ(identity.model, ReadFile(ModelPath("mistral-v1")));
  EXPECT_EQ(identity.vocab_size, 32000u);
  EXPECT_EQ(identity.unk_id, 0u);
  EXPECT_EQ(identity.bos_id, 1u);
  EXPECT_EQ(identity.eos_id, 2u);
  EXPECT_EQ(identity.pad_id, kNoId);
}

TEST(SentencePieceIdentityTest, AnEndThatAFolderNamesIsRecordedAndStandsForNoText) {
  SentencePieceModel model;
  model.is_bpe = true;
  model.add_dummy_prefix = model.remove_extra_whitespaces = false;
  model.pieces = {{"<unk>", 0, SentencePieceModel::PieceType::kUnknown},
                  {"<s>", 0, SentencePieceModel::PieceType::kControl},
                  {"</s>", 0, SentencePieceModel::PieceType::kControl},
                  {"<end>", 0, SentencePieceModel::PieceType::kNormal},
                  {"a", -1, SentencePieceModel::PieceType::kNormal}};
  SentencePieceTokenizer tokenizer(test::SerializedModel(model), "chat.model");
  const TokenizerIdentity own = tokenizer.identity();
  const std::vector<uint32_t> ids = {4, 3, 4};
  EXPECT_EQ(tokenizer.Decode(ids), "a<end>a");
  FolderSpecialTokens named;
  named.eos = "<end>";
  tokenizer.TakeSpecialIds(named);
  EXPECT_EQ(tokenizer.identity().eos_id, 3u);
  EXPECT_EQ(tokenizer.identity().bos_id, own.bos_id);
  EXPECT_EQ(tokenizer.identity().sha256, own.sha256);
  EXPECT_EQ(tokenizer.Decode(ids), "aa");
  EXPECT_EQ(tokenizer.DecodedIdOf(3).as, DecodedAs::kBreak);
  for (const TokenizerIdentity& recorded : {own, tokenizer.identity()}) {
    EXPECT_EQ(TokenizerFromIdentity(recorded)->identity(), recorded);
  }
  TokenizerIdentity impossible = own;
  impossible.eos_id = own.vocab_size;
  EXPECT_EQ(test::CodeOf([&] { TokenizerFromIdentity(impossible); }), ErrorCode::kBadInput);
}

TEST(LoadTokenizerTest, TakesTheTokenizerModelOfAFolder) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("tokenizer.model"), ReadFile(ModelPath("unigram-1k")));
  EXPECT_EQ(LoadTokenizer(folder.path())->identity().vocab_size, 1000u);
}

TEST(LoadTokenizerTest, RefusesWhatIsNoSentencePieceModelByName) {
  const test::TemporaryFolder folder;
  const struct {
    std::string name, content, expected;
  } cases[] = {
      {"tokenizer.json", "{\"version\": \"1.0\"}", "tokenizer.json"},
      {"cl100k.tiktoken", "IQ== 0\nIg== 1\n", "tiktoken"},
      {"ranks", "IQ== 0\nIg== 1\n", "tiktoken"},
      {"empty.model", "", "is empty"},
      {"junk.model", std::string("\x7F\x45LF\x02\x01\x01\0\0\0\xFF\xFE", 12), "malformed"},
      {"text.model", "Hello, this is a text\n", "malformed"},
      {"cut.model", ReadFile(ModelPath("mistral-v1")).substr(0, 100001), "malformed"},
      {"no-pieces.model", std::string("\x12\x00", 2), "no pieces"},
  };
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.name);
    test::WriteFile(folder.path(test_case.name), test_case.content);
    const auto load = [&] { LoadTokenizer(folder.path(test_case.name)); };
    EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
    const std::string message = test::MessageOf(load);
    EXPECT_NE(message.find(test_case.expected), std::string::npos) << message;
    EXPECT_NE(message.find("--tokenizer"), std::string::npos) << message;
  }
}

TEST(LoadTokenizerTest, AMissingFileIsAnIoError) {
  EXPECT_EQ(test::CodeOf([] { LoadTokenizer("/nonexistent/x.model"); }), ErrorCode::kIo);
}

TEST(TokenizerFromIdentityTest, RefusesAModelOfAnotherHash) {
  TokenizerIdentity identity = LoadTokenizer(ModelPath("unigram-1k"))->identity();
  identity.model[5000] = static_cast<char>(identity.model[5000] ^ 1);
  EXPECT_EQ(test::CodeOf([&] { TokenizerFromIdentity(identity); }), ErrorCode::kBadInput);
}

TEST(TokenizerFromIdentityTest, RefusesAMissingModelAnUnknownKindAndAFalseVocabularySize) {
  TokenizerIdentity identity = LoadTokenizer(ModelPath("unigram-1k"))->identity();
  TokenizerIdentity missing = identity, unknown = identity, false_size = identity;
  missing.model.clear();
  unknown.kind = "wordpiece";
  false_size.vocab_size = 999;
  for (const TokenizerIdentity& bad : {missing, unknown, false_size}) {
    EXPECT_EQ(test::CodeOf([&] { TokenizerFromIdentity(bad); }), ErrorCode::kBadInput);
  }
}

TEST(Utf8Test, ReplacesEachBadByteByOneReplacementCharacter) {
  uint64_t replaced = 0;
  EXPECT_EQ(ReplaceInvalidUtf8("a\xff\xfe"
                               "b\xc3 c",
                               &replaced),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b\xEF\xBF\xBD c");
  EXPECT_EQ(replaced, 3u);
}

// Unicode 15, table 3-7 (well-formed UTF-8 byte sequences), by its edges.
TEST(Utf8Test, AcceptsExactlyTheWellFormedSequences) {
  for (const char* good : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(FindInvalidUtf8(good), std::string_view::npos) << good;
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC2", "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_EQ(FindInvalidUtf8(std::string("ascii and ") + bad), 10u) << bad;
  }
}

}  // namespace
}  // namespace trainwright
