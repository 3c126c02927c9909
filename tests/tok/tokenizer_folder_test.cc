// Which tokenizer a model's folder holds.
#include "lib/tok/tokenizer_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class TokenizerFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_.path(name)) << text; }
  std::string Found() const { return TokenizerOfFolder(folder_.path()); }
  test::TemporaryFolder folder_;
};

TEST_F(TokenizerFolderTest, TheFirstFileThatThereIsIsTheTokenizer) {
  EXPECT_EQ(Found(), "");
  Write("tokenizer_config.json", "[broken");
  EXPECT_EQ(Found(), "");
  Write("tokenizer.tiktoken", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.tiktoken"));
  Write("tokenizer.json", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
  Write("tokenizer.model", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.model"));
}

TEST_F(TokenizerFolderTest, AFolderOfTheBuiltInTokenizerIsLoadedAsThat) {
  Write("tokenizer.json", R"({"model": {"type": "BPE"}})");
  Write("tokenizer_config.json", R"({"trainwright_tokenizer": "bytes"})");
  EXPECT_EQ(Found(), "bytes");
  EXPECT_EQ(LoadTokenizer(folder_.path())->identity(), LoadTokenizer("bytes")->identity());
}

// Where it is not said, transformers 4 and 5 differ.
TEST_F(TokenizerFolderTest, LlamasTokenizerMarksTextBehindSpecialTokensWhereItIsSaidToBeLegacy) {
  Write("tokenizer.model", "");
  const auto marks = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    return StartMarksOfFolder(folder_.path()) == StartMarks::kBehindSpecials;
  };
  EXPECT_TRUE(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})"));
  EXPECT_TRUE(marks(R"({"tokenizer_class": "LlamaTokenizerFast", "legacy": true})"));
  EXPECT_FALSE(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})"));
  EXPECT_FALSE(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": null})"));
  EXPECT_FALSE(marks(R"({"tokenizer_class": "LlamaTokenizer"})"));
  EXPECT_FALSE(marks(R"({"tokenizer_class": "T5Tokenizer", "legacy": true})"));
  EXPECT_FALSE(marks("[broken"));
  Write("tokenizer.json", "");
  EXPECT_FALSE(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})"));
}

// As transformers 4.57 and 5.23: Metaspace puts it "first", or "never".
TEST_F(TokenizerFolderTest, LlamasTokenizerMarksNoTextBehindBosWhereItIsSaidToBeNotLegacyOrToPutNoSpace) {
  Write("tokenizer.model", "");
  const auto marks = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    return StartMarksOfFolder(folder_.path());
  };
  EXPECT_EQ(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})"), StartMarks::kFirst);
  EXPECT_EQ(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": false, "add_prefix_space": true})"),
            StartMarks::kFirst);
  EXPECT_EQ(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": null})"), StartMarks::kBehindBos);
  EXPECT_EQ(marks(R"({"tokenizer_class": "LlamaTokenizer"})"), StartMarks::kBehindBos);
  for (const char* legacy : {"true", "false", "null"}) {
    EXPECT_EQ(marks(std::string(R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false, )") +
                    "\"legacy\": " + legacy + "}"),
              StartMarks::kNone)
        << legacy;
  }
  EXPECT_EQ(marks(R"({"tokenizer_class": "T5Tokenizer", "legacy": false})"), std::nullopt);
  Write("tokenizer.json", "");
  EXPECT_EQ(marks(R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})"), std::nullopt);
}

/// A folder of a chat model: a SentencePiece model, and marks that were added to it.
class AddedTokensTest : public TokenizerFolderTest {
 protected:
  AddedTokensTest() {
    std::filesystem::copy(test::Fixture("tok/testdata/unigram/byte-fallback.model"),
                          folder_.path("tokenizer.model"));
  }
  /// smollm2's adds <|endoftext|> as 0 and <|im_start|> as 1.
  void CopyTokenizerJson() {
    std::filesystem::copy(test::Fixture("tok/testdata/tokenizer_json/smollm2.json"),
                          folder_.path("tokenizer.json"));
  }
};

TEST_F(AddedTokensTest, MarksThatTheModelLacksAreReadByTheTokenizerJsonThatHasThem) {
  CopyTokenizerJson();
  Write("added_tokens.json", R"({"<|im_start|>": 1})");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
  std::vector<uint32_t> ids;
  LoadTokenizer(folder_.path())->Encode("<|im_start|>", &ids);
  EXPECT_THAT(ids, testing::ElementsAre(1));
}

TEST_F(AddedTokensTest, TheConfigurationNamesMarksAsWell) {
  CopyTokenizerJson();
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "<|im_start|>"}}})");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
}

TEST_F(AddedTokensTest, TheTokenizerJsonAloneNamesMarksWhereTransformers5SavedThem) {
  CopyTokenizerJson();
  Write("tokenizer_config.json", R"({"backend": "tokenizers", "eos_token": "<|im_end|>"})");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
}

TEST_F(AddedTokensTest, MarksThatNoFileHasAreRefusedByName) {
  Write("added_tokens.json", R"({"<|im_end|>": 90001, "<|im_start|>": 90002})");
  const auto message = [&] { return test::MessageOf([&] { LoadTokenizer(folder_.path()); }); };
  EXPECT_THAT(message(), testing::HasSubstr("lacks tokens that the folder adds: <|im_end|> (90001), "
                                            "<|im_start|> (90002), and there is no tokenizer.json"));
  EXPECT_THAT(message(), testing::HasSubstr(folder_.path()));
  CopyTokenizerJson();
  EXPECT_THAT(message(), testing::HasSubstr("and so does its tokenizer.json"));
  EXPECT_EQ(test::CodeOf([&] { LoadTokenizer(folder_.path()); }), ErrorCode::kBadInput);
}

TEST_F(AddedTokensTest, AModelThatHasAllMarksOrLacksPaddingAloneIsReadAsItIs) {
  CopyTokenizerJson();
  const auto specials = LoadTokenizer(folder_.path("tokenizer.model"))->special_tokens();
  ASSERT_FALSE(specials.empty());
  nlohmann::json config;
  for (const SpecialToken& token : specials) {
    config["added_tokens_decoder"][std::to_string(token.id)] = {{"content", token.text}};
  }
  Write("tokenizer_config.json", config.dump());
  EXPECT_EQ(Found(), folder_.path("tokenizer.model"));
  config["added_tokens_decoder"]["90001"] = {{"content", "[PAD]"}};
  config["pad_token"] = "[PAD]";
  Write("tokenizer_config.json", config.dump());
  EXPECT_EQ(Found(), folder_.path("tokenizer.model"));
}

TEST_F(AddedTokensTest, AMarkInThePlaceOfAnotherPieceIsNoneOfTheModel) {
  const auto tokenizer = LoadTokenizer(folder_.path("tokenizer.model"));
  const nlohmann::json renamed = {{"<|im_start|>", tokenizer->identity().vocab_size - 1}};
  Write("added_tokens.json", renamed.dump());
  EXPECT_EQ(test::CodeOf([&] { LoadTokenizer(folder_.path()); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
