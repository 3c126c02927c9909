// Which tokens begin, end and pad a text by the files of a model's folder. Expected is what AutoTokenizer of
// transformers 4.57 and 5.23 takes of such folders.
#include "lib/tok/folder_special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lib/base/error.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"
#include "tests/tok/sentencepiece_model_builder.h"

namespace trainwright {
namespace {

class FolderSpecialTokensTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { test::WriteFile(folder_.path(name), text); }
  void CopyTokenizer(const std::string& fixture) {
    Write("tokenizer.json", test::ReadFile(test::Fixture("tok/testdata/" + fixture + ".json")));
  }
  /// BOS, EOS, padding and unknown, as they are written; "-" for what there is not.
  std::string Named() const {
    const std::unique_ptr<Tokenizer> tokenizer = LoadTokenizer(folder_.path());
    const TokenizerIdentity& identity = tokenizer->identity();
    const auto& specials = tokenizer->special_tokens();
    std::string named;
    for (const uint32_t id : {identity.bos_id, identity.eos_id, identity.pad_id, identity.unk_id}) {
      const auto special = std::find_if(specials.begin(), specials.end(),
                                        [&](const SpecialToken& token) { return token.id == id; });
      named += (named.empty() ? "" : " ") + (special == specials.end() ? "-" : special->text);
    }
    return named;
  }
  test::TemporaryFolder folder_;
};

// As OpenAI published GPT-2.
TEST_F(FolderSpecialTokensTest, AFolderThatNamesNoneHasThoseOfItsTokenizersClass) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json", R"({"model_max_length": 1024})");
  Write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(Named(), "<|endoftext|> <|endoftext|> - <|endoftext|>");
  CopyTokenizer("tokenizer_json/qwen2");
  Write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2TokenizerFast", "eos_token": "<|im_end|>"})");
  EXPECT_EQ(Named(), "- <|im_end|> <|endoftext|> <|endoftext|>");
}

TEST_F(FolderSpecialTokensTest, ATokenThatTheConfigurationSaysIsNullIsNone) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": null})");
  EXPECT_EQ(Named(), "<|endoftext|> - - <|endoftext|>");
}

TEST_F(FolderSpecialTokensTest, AGeneralClassHasNoneThatNothingNames) {
  CopyTokenizer("tokenizer_json/gpt2");
  for (const char* name : {"PreTrainedTokenizerFast", "TokenizersBackend"}) {
    Write("tokenizer_config.json", std::string(R"({"tokenizer_class": ")") + name + "\"}");
    EXPECT_EQ(Named(), "- - - -") << name;
  }
}

TEST_F(FolderSpecialTokensTest, OfAClassThatIsNotKnownTheTokenizerKeepsItsOwn) {
  CopyTokenizer("text_tokenizers/bert");
  Write("tokenizer_config.json", R"({"tokenizer_class": "OtherTokenizer"})");
  EXPECT_EQ(Named(), "[CLS] [SEP] [PAD] [UNK]");
  Write("tokenizer_config.json", R"({"do_lower_case": true})");
  Write("config.json", R"({"model_type": "bert"})");
  EXPECT_EQ(Named(), "- - [PAD] [UNK]");
}

TEST_F(FolderSpecialTokensTest, TheMapOfSpecialTokensCountsWhereTheConfigurationListsNoAddedTokens) {
  CopyTokenizer("tokenizer_json/qwen2");
  Write("special_tokens_map.json", R"({"eos_token": {"content": "<|im_end|>"}})");
  Write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>"})");
  EXPECT_EQ(Named(), "- <|im_end|> <|endoftext|> <|endoftext|>");
  Write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {}})");
  EXPECT_EQ(Named(), "- <|endoftext|> <|endoftext|> <|endoftext|>");
}

/// Its own ends are <s> and </s>.
std::string ChatModel(SentencePieceModel::PieceType type_of_end) {
  using PieceType = SentencePieceModel::PieceType;
  SentencePieceModel model;
  model.is_bpe = true;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown},
                  {"<s>", 0, PieceType::kControl},
                  {"</s>", 0, type_of_end},
                  {"<|im_end|>", 0, PieceType::kControl},
                  {"end", -1, PieceType::kNormal}};
  return test::SerializedModel(model);
}

// As Yi's chat models are published.
TEST_F(FolderSpecialTokensTest, ATokenizerModelBeginsAndEndsTextsAsItsConfigurationSays) {
  Write("tokenizer.model", ChatModel(SentencePieceModel::PieceType::kControl));
  EXPECT_EQ(Named(), "<s> </s> - -");
  Write("tokenizer_config.json",
        R"({"tokenizer_class": "LlamaTokenizer", "eos_token": {"content": "<|im_end|>"}})");
  EXPECT_EQ(Named(), "<s> <|im_end|> - -");
  Write("tokenizer_config.json", R"({"bos_token": "<|im_end|>", "eos_token": "end"})");
  EXPECT_EQ(Named(), "<|im_end|> end - -");
}

TEST_F(FolderSpecialTokensTest, ATokenizerModelKeepsItsOwnWhereTheConfigurationNamesNoneOfItsPieces) {
  Write("tokenizer.model", ChatModel(SentencePieceModel::PieceType::kControl));
  for (const char* config : {R"({"eos_token": "<|other|>"})", R"({"eos_token": null})", "{}",
                             R"({"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>"})"}) {
    Write("tokenizer_config.json", config);
    EXPECT_EQ(Named(), "<s> </s> - -") << config;
  }
}

// As Gemma's are: checkpoints of earlier versions say so of every model.
TEST_F(FolderSpecialTokensTest, AMarkOfHtmlEndsNoTextsOfATokenizerModel) {
  Write("tokenizer.model", ChatModel(SentencePieceModel::PieceType::kUserDefined));
  const std::string before = Named();
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>"})");
  EXPECT_EQ(Named(), before);
}

TEST_F(FolderSpecialTokensTest, ATokenizerModelHasItsOwnWhereTheConfigurationIsMalformed) {
  Write("tokenizer.model", ChatModel(SentencePieceModel::PieceType::kUserDefined));
  const std::string before = Named();
  Write("tokenizer_config.json", "[broken");
  EXPECT_EQ(Named(), before);
}

TEST_F(FolderSpecialTokensTest, AMalformedConfigurationIsRefused) {
  Write("tokenizer_config.json", "[broken");
  EXPECT_EQ(test::CodeOf([&] { SpecialTokensOfFolder(folder_.path()); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
