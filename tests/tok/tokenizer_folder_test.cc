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
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"
#include "tests/tok/sentencepiece_model_builder.h"

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

// As transformers 4.57 and 5.24 by their default tokenizers, whether it is legacy or not.
TEST_F(TokenizerFolderTest, TextsOfALlamaTokenizerThatPutsNoSpaceBeginWithoutAMark) {
  const std::string model = test::Fixture("../examples/data/mistral-v1.model");
  std::filesystem::copy(model, folder_.path("tokenizer.model"));
  std::vector<uint32_t> marked, unmarked;
  LoadTokenizer(model)->Encode("the end", &marked);
  LoadTokenizer(model)->EncodeContinued("the end", &unmarked);
  ASSERT_NE(marked, unmarked);
  const auto ids_by = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    std::vector<uint32_t> ids;
    LoadTokenizer(folder_.path())->Encode("the end", &ids);
    return ids;
  };
  EXPECT_EQ(ids_by(R"({"tokenizer_class": "LlamaTokenizer"})"), marked);
  EXPECT_EQ(ids_by(R"({"tokenizer_class": "T5Tokenizer", "add_prefix_space": false})"), marked);
  for (const char* legacy : {"true", "false", "null"}) {
    EXPECT_EQ(ids_by(std::string(R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false, )") +
                     "\"legacy\": " + legacy + "}"),
              unmarked)
        << legacy;
  }
  EXPECT_EQ(ids_by(R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false,
                       "trainwright_tokenizer": "sentencepiece"})"),
            marked);
}

TEST_F(TokenizerFolderTest, ATokenizerThatPutsNoSpaceIsKnownByItsIdentity) {
  const std::string model = test::Fixture("../examples/data/mistral-v1.model");
  std::filesystem::copy(model, folder_.path("tokenizer.model"));
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})");
  const auto tokenizer = LoadTokenizer(folder_.path());
  EXPECT_NE(tokenizer->identity().sha256, LoadTokenizer(model)->identity().sha256);
  const auto recorded = TokenizerFromIdentity(tokenizer->identity());
  EXPECT_FALSE(recorded->marks_start());
  EXPECT_EQ(recorded->identity(), tokenizer->identity());
}

constexpr char kPrepends[] =
    R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "pre_tokenizer": null,
        "added_tokens": [{"id": 2, "content": "</s>", "special": true, "normalized": false}]})";

std::string WithMetaspace(const std::string& scheme) {
  return R"({"normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", )" + scheme +
         "}}";
}

// As transformers 4.57 and 5.24: the library normalizes each stretch between special tokens by itself.
TEST_F(TokenizerFolderTest, TextIsMarkedAsATokenizerJsonBesideTheModelSays) {
  Write("tokenizer.model", "");
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  Write("config.json", R"({"model_type": "mistral"})");
  const auto marks = [&](const std::string& tokenizer_json) {
    Write("tokenizer.json", tokenizer_json);
    return StartMarksOfFolder(folder_.path());
  };
  EXPECT_EQ(marks(kPrepends), StartMarks::kBehindSpecials);
  EXPECT_EQ(marks(R"({"normalizer": {"type": "Prepend", "prepend": "\u2581"}})"),
            StartMarks::kBehindSpecials);
  EXPECT_EQ(marks(WithMetaspace(R"("prepend_scheme": "always")")), StartMarks::kBehindSpecials);
  EXPECT_EQ(marks(WithMetaspace(R"("add_prefix_space": true)")), StartMarks::kBehindSpecials);
  EXPECT_EQ(marks(WithMetaspace(R"("prepend_scheme": "first")")), StartMarks::kFirst);
  EXPECT_EQ(marks(WithMetaspace(R"("prepend_scheme": "never")")), StartMarks::kNone);
  EXPECT_EQ(marks(R"({"normalizer": null, "pre_tokenizer": {"type": "ByteLevel"}})"), std::nullopt);
  Write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  std::filesystem::remove(folder_.path("config.json"));
  EXPECT_EQ(marks(kPrepends), StartMarks::kBehindSpecials);
}

// The text is normalized whole, and special tokens are found in what that gives.
TEST_F(TokenizerFolderTest, ATokenizerJsonThatFindsSpecialTokensInNormalizedTextSaysNothingOfMarks) {
  Write("tokenizer.model", "");
  nlohmann::json tokenizer = nlohmann::json::parse(kPrepends);
  tokenizer["added_tokens"][0]["normalized"] = true;
  Write("tokenizer.json", tokenizer.dump());
  EXPECT_EQ(StartMarksOfFolder(folder_.path()), std::nullopt);
}

// As transformers 5.24, which makes it anew; 4.57 goes by the tokenizer.json.
TEST_F(TokenizerFolderTest, ALlamaTokenizerBesideATokenizerJsonGoesByWhetherItIsLegacy) {
  Write("tokenizer.model", "");
  Write("tokenizer.json", kPrepends);
  const auto marks = [&](const std::string& said) {
    Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast")" + said + "}");
    return StartMarksOfFolder(folder_.path());
  };
  for (const char* config : {"{}", R"({"model_type": "llama"})"}) {
    Write("config.json", config);
    EXPECT_EQ(marks(R"(, "legacy": true)"), StartMarks::kBehindSpecials) << config;
    EXPECT_EQ(marks(R"(, "legacy": false)"), StartMarks::kFirst) << config;
    EXPECT_EQ(marks(R"(, "legacy": true, "add_prefix_space": false)"), StartMarks::kNone) << config;
    EXPECT_EQ(marks(""), StartMarks::kBehindBos) << config;
  }
  Write("tokenizer.json", WithMetaspace(R"("prepend_scheme": "first")"));
  EXPECT_EQ(marks(""), StartMarks::kFirst);
}

// Of a file that transformers 5 makes anew its special tokens are as little as its normalizer.
TEST_F(TokenizerFolderTest, ALlamaTokenizerIsLegacyWhateverItsTokenizerJsonNormalizes) {
  Write("tokenizer.model", "");
  nlohmann::json tokenizer = nlohmann::json::parse(kPrepends);
  tokenizer["added_tokens"][0]["normalized"] = true;
  Write("tokenizer.json", tokenizer.dump());
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})");
  EXPECT_EQ(StartMarksOfFolder(folder_.path()), StartMarks::kBehindSpecials);
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

// As pieces are that were appended without a type: merges never make them, and nothing else looks for them.
TEST_F(AddedTokensTest, AMarkThatIsANormalPieceIsNoneOfTheModel) {
  using PieceType = SentencePieceModel::PieceType;
  SentencePieceModel model;
  model.is_bpe = true;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown},
                  {"<|im_start|>", 0, PieceType::kNormal},
                  {"<|im_end|>", 0, PieceType::kControl},
                  {"a", -1, PieceType::kNormal}};
  Write("tokenizer.model", test::SerializedModel(model));
  Write("added_tokens.json", R"({"<|im_start|>": 1, "<|im_end|>": 2})");
  const auto load = [&] { LoadTokenizer(folder_.path()); };
  EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf(load), testing::HasSubstr("the folder adds: <|im_start|> (1), and"));
  CopyTokenizerJson();
  Write("added_tokens.json", R"({"<|im_start|>": 1})");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
}

// As CodeLlama's <PRE>: a normal piece that merges reach.
TEST_F(AddedTokensTest, AMarkThatMergesMakeIsOneOfTheModel) {
  using PieceType = SentencePieceModel::PieceType;
  SentencePieceModel model;
  model.is_bpe = true;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"<P", -1, PieceType::kNormal},
                  {"<P>", -2, PieceType::kNormal},   {"<", -3, PieceType::kNormal},
                  {"P", -4, PieceType::kNormal},     {">", -5, PieceType::kNormal}};
  Write("tokenizer.model", test::SerializedModel(model));
  Write("added_tokens.json", R"({"<P>": 2})");
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
