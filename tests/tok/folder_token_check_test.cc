// Tokens that the other files of a folder name and its tokenizer.json lacks, or has otherwise.
#include "lib/tok/folder_token_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FolderTokenCheckTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { test::WriteFile(folder_.path(name), text); }
  void CopyTokenizer(const std::string& fixture) {
    Write("tokenizer.json", test::ReadFile(test::Fixture("tok/testdata/" + fixture + ".json")));
  }
  /// Of the refusal; empty where the folder is read.
  std::string Refusal() const {
    return test::MessageOf([&] { LoadTokenizer(folder_.path()); });
  }
  /// What is said where the folder is read.
  std::string Warnings() const {
    testing::internal::CaptureStderr();
    const std::string refusal = Refusal();
    return testing::internal::GetCapturedStderr() + refusal;
  }
  test::TemporaryFolder folder_;
};

TEST_F(FolderTokenCheckTest, AnAddedTokenOfTheConfigurationThatIsLackingIsRefusedByName) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"901": {"content": "<|tool|>"}}})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("lacks tokens that other files there name: <|tool|>"),
                               HasSubstr(".save_pretrained('" + folder_.path() + "')")));
  EXPECT_EQ(test::CodeOf([&] { LoadTokenizer(folder_.path()); }), ErrorCode::kBadInput);
}

TEST_F(FolderTokenCheckTest, AnEosThatIsLackingIsRefusedByName) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_THAT(Refusal(), HasSubstr("<|im_end|>"));
  Write("tokenizer_config.json", "{}");
  Write("special_tokens_map.json", R"({"eos_token": {"content": "<|end|>"}})");
  EXPECT_THAT(Refusal(), HasSubstr("<|end|>"));
}

TEST_F(FolderTokenCheckTest, AddedTokensByTextCountWhereTheConfigurationListsNone) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("added_tokens.json", R"({"<|tool|>": 901})");
  EXPECT_THAT(Refusal(), HasSubstr("<|tool|>"));
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
  EXPECT_EQ(Refusal(), "");
}

TEST_F(FolderTokenCheckTest, TheTokenizerJsonAloneNamesTokensWhereTransformers5SavedThem) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json",
        R"({"backend": "tokenizers", "added_tokens_decoder": {"901": {"content": "<|tool|>"}}})");
  EXPECT_EQ(Refusal(), "");
}

// As save_pretrained of transformers 4.57 writes folders.
TEST_F(FolderTokenCheckTest, NothingIsSaidOfTokensThatAreListedAlikeOrOnlyPad) {
  for (const char* fixture : {"tokenizer_json/qwen2", "text_tokenizers/llama2"}) {
    CopyTokenizer(fixture);
    const json file = json::parse(test::ReadFile(folder_.path("tokenizer.json")));
    json config = {{"pad_token", "[PAD]"}};
    for (json token : file.at("added_tokens")) {
      const std::string id = std::to_string(token.at("id").get<uint32_t>());
      token.erase("id");
      config["added_tokens_decoder"][id] = token;
    }
    config["added_tokens_decoder"]["90001"] = {{"content", "[PAD]"}, {"special", true}};
    Write("tokenizer_config.json", config.dump());
    EXPECT_EQ(Warnings(), "") << fixture;
    EXPECT_EQ(LoadTokenizer(folder_.path())->identity(),
              LoadTokenizer(test::Fixture("tok/testdata/" + std::string(fixture) + ".json"))->identity())
        << fixture;
  }
}

TEST_F(FolderTokenCheckTest, FlagsThatTheConfigurationHasOtherwiseAreWarnedOf) {
  CopyTokenizer("tokenizer_json/gpt2");
  for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
    const json token = {{"content", "<|endoftext|>"}, {"special", true}, {"normalized", true}, {flag, true}};
    const json config = {{"added_tokens_decoder", {{"900", token}}}};
    Write("tokenizer_config.json", config.dump());
    EXPECT_THAT(Warnings(), AllOf(HasSubstr("warning"), HasSubstr("<|endoftext|>"))) << flag;
  }
}

// Llama's normalizer puts U+2581 before "<s>", so that no text has it but at its beginning.
TEST_F(FolderTokenCheckTest, NormalizedTokensAreWarnedOfWhereANormalizerChangesThem) {
  const auto warnings = [&](const std::string& fixture, const char* token, const char* id) {
    CopyTokenizer(fixture);
    const json listed = {{"content", token}, {"special", true}, {"normalized", true}};
    const json other = {{"content", token}, {"special", true}, {"normalized", false}};
    std::string all;
    for (const json* each : {&listed, &other}) {
      const json config = {{"added_tokens_decoder", {{id, *each}}}};
      Write("tokenizer_config.json", config.dump());
      all += Warnings();
    }
    return all;
  };
  EXPECT_THAT(warnings("text_tokenizers/llama2", "<s>", "1"), HasSubstr("transformers finds tokens"));
  EXPECT_EQ(warnings("tokenizer_json/gpt2", "<|endoftext|>", "900"), "");
}

TEST_F(FolderTokenCheckTest, ATokenOfTheModelThatTheConfigurationAddsIsWarnedOf) {
  CopyTokenizer("tokenizer_json/gpt2");
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"64": {"content": "a"}}})");
  EXPECT_THAT(Warnings(), HasSubstr("is done here: a"));
}

}  // namespace
}  // namespace trainwright
