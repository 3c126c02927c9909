#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lib/model/hf_folder.h"
#include "lib/model/open_model.h"
#include "lib/spec/llama_family.h"
#include "lib/tok/folder_special_tokens.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/sentencepiece_tokenizer.h"
#include "lib/tok/tokenizer.h"
#include "tests/model/families.h"
#include "tests/support/support.h"
#include "tests/tok/sentencepiece_model_builder.h"

namespace trainwright {
namespace {

std::string FamilyPath(const std::string& family) {
  return test::Fixture("tok/testdata/tokenizer_json/" + family + ".json");
}

void WriteModel(const std::string& folder, const TokenizerIdentity& tokenizer) {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = 1024;
  config.hidden_size = 8;
  config.intermediate_size = 8;
  config.num_layers = 1;
  config.num_heads = 1;
  config.num_kv_heads = 1;
  config.head_dim = 8;
  config.max_positions = 8;
  WriteHfFolder(folder, *MakeModel(test::Families(), config, Precision::kFp32, at::kCPU, 1), tokenizer);
}

TEST(TokenizerFolderTest, AModelFolderGivesBackTheTokenizerJsonItWasWrittenWith) {
  for (const char* family : {"gpt2", "neox", "llama3", "qwen2", "smollm2"}) {
    SCOPED_TRACE(family);
    const test::TemporaryFolder folder;
    const TokenizerIdentity identity = LoadTokenizer(FamilyPath(family))->identity();
    WriteModel(folder.path(), identity);
    EXPECT_EQ(test::ReadFile(folder.path("tokenizer.json")), test::ReadFile(FamilyPath(family)));
    std::string problem;
    const auto tokenizer = LoadTokenizerOfFolder(folder.path(), &problem);
    ASSERT_NE(tokenizer, nullptr) << problem;
    EXPECT_EQ(tokenizer->identity(), identity);
  }
}

// What transformers reads from it.
TEST(TokenizerFolderTest, TheConfigNamesTheMarksAsTheFileWritesThem) {
  const test::TemporaryFolder folder;
  WriteModel(folder.path(), LoadTokenizer(FamilyPath("llama3"))->identity());
  const auto config = nlohmann::json::parse(test::ReadFile(folder.path("tokenizer_config.json")));
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(config["bos_token"], "<|begin_of_text|>");
  EXPECT_EQ(config["eos_token"], "<|end_of_text|>");
  EXPECT_FALSE(config.contains("pad_token"));
}

// Another name is a token that transformers adds behind the vocabulary, or in Gemma's HTML.
TEST(TokenizerFolderTest, TheConfigNamesTheMarksAsTheSentencePieceModelWritesThem) {
  using PieceType = SentencePieceModel::PieceType;
  SentencePieceModel model;
  model.is_bpe = true;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown},
                  {"<|startoftext|>", 0, PieceType::kControl},
                  {"<|endoftext|>", 0, PieceType::kControl},
                  {"<pad>", 0, PieceType::kControl},
                  {"a", -1, PieceType::kNormal}};
  SentencePieceTokenizer tokenizer(test::SerializedModel(model), "yi.model");
  FolderSpecialTokens named;
  named.bos = "<|startoftext|>";
  named.eos = "<|endoftext|>";
  tokenizer.TakeSpecialIds(named);
  const test::TemporaryFolder folder;
  WriteModel(folder.path(), tokenizer.identity());
  const auto config = nlohmann::json::parse(test::ReadFile(folder.path("tokenizer_config.json")));
  EXPECT_EQ(config["bos_token"], "<|startoftext|>");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  EXPECT_EQ(config["pad_token"], "<pad>");
  EXPECT_EQ(config["unk_token"], "<unk>");
  EXPECT_EQ(LoadTokenizer(folder.path())->identity(), tokenizer.identity());
}

TEST(TokenizerFolderTest, AModelWithATokenizerThatIsNotReadIsOfUseWithout) {
  const test::TemporaryFolder folder;
  WriteModel(folder.path(), LoadTokenizer(FamilyPath("gpt2"))->identity());
  auto json = nlohmann::json::parse(test::ReadFile(FamilyPath("gpt2")));
  json["model"]["byte_fallback"] = true;
  test::WriteFile(folder.path("tokenizer.json"), json.dump());
  const Checkpoint checkpoint = LoadCheckpoint(test::Families(), folder.path(), Precision::kFp32, at::kCPU);
  EXPECT_NE(checkpoint.model, nullptr);
  EXPECT_EQ(checkpoint.tokenizer, nullptr);
  EXPECT_THAT(checkpoint.tokenizer_problem, ::testing::HasSubstr("byte_fallback"));
}

}  // namespace
}  // namespace trainwright
