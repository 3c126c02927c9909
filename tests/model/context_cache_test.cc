// Keys and values that are kept stand for the tokens that they were made of.
#include "lib/model/context_cache.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kFp32Numerics;
using test::LivelyModel;
using test::MaxDifference;

constexpr int64_t kMostTokens = 64;

struct ContextFamily {
  std::string name;
  ModelConfig config;
};

void PrintTo(const ContextFamily& family, std::ostream* out) {
  *out << family.name;
}

std::vector<int64_t> RandomTokens(const ModelConfig& config, int64_t count, uint64_t stream) {
  const ModelInput input = test::RandomInput(config, {count}, stream);
  const auto* ids = input.tokens_n.const_data_ptr<int64_t>();
  return {ids, ids + count};
}

CachedContext ContextOf(LanguageModel* model, const std::vector<int64_t>& tokens, AttentionMask mask) {
  const auto decoder = model->NewDecoder(kMostTokens);
  decoder->body().Prefill(0, tokens, mask);
  return {tokens, mask, decoder->body().Export(0)};
}

/// fp32 logits [V] of the token behind contexts and a prompt.
at::Tensor LogitsBehind(LanguageModel* model, const std::vector<CachedContext>& contexts,
                        const std::vector<int64_t>& prompt) {
  const auto decoder = model->NewDecoder(kMostTokens);
  for (const CachedContext& context : contexts) decoder->body().Import(0, context.cache);
  return decoder->Append(prompt);
}

class ContextTest : public testing::TestWithParam<ContextFamily> {
 protected:
  const ModelConfig& config() const { return GetParam().config; }
};

INSTANTIATE_TEST_SUITE_P(Families, ContextTest,
                         testing::Values(ContextFamily{"llama", test::SmallLlama()},
                                         ContextFamily{"mistral", test::SmallMistral()},
                                         ContextFamily{"qwen2", test::SmallQwen2()},
                                         ContextFamily{"gpt2", test::SmallGpt2()},
                                         ContextFamily{"neox", test::SmallNeox()}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ContextTest, BehindACausalContextLogitsAreThoseOfAllTokensTogether) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const std::vector<int64_t> context = RandomTokens(config(), 25, 1), prompt = RandomTokens(config(), 7, 2);
  std::vector<int64_t> all = context;
  all.insert(all.end(), prompt.begin(), prompt.end());
  const at::Tensor logits =
      LogitsBehind(model.get(), {ContextOf(model.get(), context, AttentionMask::kCausal)}, prompt);
  EXPECT_LT(MaxDifference(logits, model->NewDecoder(kMostTokens)->Append(all)), 1e-5);
}

TEST_P(ContextTest, HiddenStatesOfAContextAreThoseOfAForwardPassUnderItsMask) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  for (const AttentionMask mask : {AttentionMask::kCausal, AttentionMask::kBidirectional}) {
    ModelInput input = test::RandomInput(config(), {25}, 3);
    input.mask = mask;
    const at::Tensor expected = model->body().Forward(input, Keep::kNothing).clone();
    const auto decoder = model->NewDecoder(kMostTokens);
    const at::Tensor hidden_nd = decoder->body().Prefill(0, RandomTokens(config(), 25, 3), mask);
    EXPECT_TRUE(at::equal(hidden_nd, expected));
  }
}

TEST_P(ContextTest, APromptSeesABidirectionalContextAsItWasEmbedded) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  std::vector<int64_t> context = RandomTokens(config(), 10, 4);
  const std::vector<int64_t> prompt = RandomTokens(config(), 3, 5);
  const at::Tensor causal =
      LogitsBehind(model.get(), {ContextOf(model.get(), context, AttentionMask::kCausal)}, prompt);
  const at::Tensor bidirectional =
      LogitsBehind(model.get(), {ContextOf(model.get(), context, AttentionMask::kBidirectional)}, prompt);
  EXPECT_GT(MaxDifference(causal, bidirectional), 1e-3);
}

TEST_P(ContextTest, ContextsStandOneBehindTheOther) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const CachedContext first = ContextOf(model.get(), RandomTokens(config(), 9, 6), AttentionMask::kCausal),
                      second = ContextOf(model.get(), RandomTokens(config(), 4, 7), AttentionMask::kCausal);
  const auto decoder = model->NewDecoder(kMostTokens);
  decoder->body().Import(0, first.cache);
  decoder->body().Import(0, second.cache);
  EXPECT_EQ(decoder->length(), 13);
  const CacheTensors both = decoder->body().Export(0);
  EXPECT_TRUE(at::equal(both.keys_lgmk.narrow(2, 0, 9), first.cache.keys_lgmk));
  EXPECT_TRUE(at::equal(both.values_lgmk.narrow(2, 9, 4), second.cache.values_lgmk));
}

TEST(ContextRefusalTest, PositionsThatDependOnTheLengthAreRefused) {
  const ModelConfig config = test::SmallDynamicLlama();
  const auto model = LivelyModel(config, kFp32Numerics);
  const std::vector<int64_t> tokens = RandomTokens(config, 9, 1);
  EXPECT_EQ(test::CodeOf([&] { ContextOf(model.get(), tokens, AttentionMask::kCausal); }), ErrorCode::kUsage);
  const auto other = LivelyModel(test::SmallLlama(), kFp32Numerics);
  const CachedContext context = ContextOf(other.get(), tokens, AttentionMask::kCausal);
  EXPECT_EQ(test::CodeOf([&] { LogitsBehind(model.get(), {context}, {1}); }), ErrorCode::kUsage);
}

TEST(ContextRefusalTest, AContextOfAnotherShapeIsRefused) {
  const auto model = LivelyModel(test::SmallLlama(), kFp32Numerics);
  const auto other = LivelyModel(test::SmallGpt2(), kFp32Numerics);
  const CachedContext context =
      ContextOf(other.get(), RandomTokens(test::SmallGpt2(), 9, 1), AttentionMask::kCausal);
  EXPECT_EQ(test::CodeOf([&] { LogitsBehind(model.get(), {context}, {1}); }), ErrorCode::kBadInput);
}

class ContextCacheTest : public testing::Test {
 protected:
  ContextCacheTest() {
    context_ = ContextOf(model_.get(), RandomTokens(model_->config(), 12, 1), AttentionMask::kBidirectional);
  }
  void Write() {
    ContextCacheWriter writer(path_, identity_);
    writer.Add("doc 1", context_);
    writer.Commit();
  }
  /// An index of one line, without a hash.
  /// \param rest of the line's members, after a comma
  void WriteIndex(const std::string& rest) const {
    test::WriteFile(path_ + "/index.jsonl", R"({"id":"doc 1","file":"00000000.safetensors")" + rest + "}\n");
  }
  /// Of what refuses the folder; empty: nothing does.
  std::string OpenMessage() const {
    return test::MessageOf([&] { const ContextCache cache(path_, identity_); });
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("contexts");
  const ContextIdentity identity_ = {"0123", "fp32"};
  const std::unique_ptr<LanguageModel> model_ = LivelyModel(test::SmallLlama(), kFp32Numerics);
  CachedContext context_;
};

TEST_F(ContextCacheTest, WhatWasKeptIsReadBitForBit) {
  Write();
  const ContextCache cache(path_, identity_);
  EXPECT_EQ(cache.size(), 1u);
  const CachedContext read = cache.Read("doc 1");
  EXPECT_EQ(read.tokens, context_.tokens);
  EXPECT_EQ(read.mask, AttentionMask::kBidirectional);
  EXPECT_TRUE(at::equal(read.cache.keys_lgmk, context_.cache.keys_lgmk));
  EXPECT_TRUE(at::equal(read.cache.values_lgmk, context_.cache.values_lgmk));
}

TEST_F(ContextCacheTest, TheExampleOfTheManPageIsWrittenAndRead) {
  constexpr char kSha256[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  const at::Tensor keys = at::zeros({1, 1, 2, 2}, at::kFloat), values = at::zeros({1, 1, 2, 2}, at::kFloat);
  const float key_values[] = {1, 0, 0.6F, 0.8F}, value_values[] = {0, 1, 2, -3};
  std::copy(std::begin(key_values), std::end(key_values), keys.mutable_data_ptr<float>());
  std::copy(std::begin(value_values), std::end(value_values), values.mutable_data_ptr<float>());
  ContextCacheWriter writer(path_, {kSha256, "fp32"});
  writer.Add("doc7", {{72, 105}, AttentionMask::kCausal, {keys, values}});
  writer.Commit();
  EXPECT_EQ(HexEncode(ReadWholeFile(path_ + "/00000000.safetensors")),
            HexEncode(test::HexDumpOf("trainwright-context.5")));
  EXPECT_EQ(AsText(ReadWholeFile(path_ + "/index.jsonl")),
            "{\"id\":\"doc7\",\"file\":\"00000000.safetensors\",\"tokens\":2,\"mask\":\"causal\","
            "\"sha256\":\"8e6f1300817c1dfd547b94c569a40cc15efe9c660310b93452bd884dce455233\"}\n");
  EXPECT_EQ(ContextCache(path_, {kSha256, "fp32"}).Read("doc7").tokens, (std::vector<int64_t>{72, 105}));
}

TEST_F(ContextCacheTest, WithoutACommitThereIsNoFolder) {
  {
    ContextCacheWriter writer(path_, identity_);
    writer.Add("doc 1", context_);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ContextCacheTest, AnotherModelsOrPrecisionsAreRefused) {
  Write();
  for (const ContextIdentity& other : {ContextIdentity{"4567", "fp32"}, ContextIdentity{"0123", "bf16"}}) {
    EXPECT_EQ(test::CodeOf([&] { const ContextCache cache(path_, other); }), ErrorCode::kBadInput);
  }
}

TEST_F(ContextCacheTest, AnotherConfigurationsAreRefused) {
  ContextCacheWriter writer(path_, {"0123", "fp32", "89ab"});
  writer.Add("doc 1", context_);
  writer.Commit();
  const std::string message = test::MessageOf([&] {
    const ContextCache cache(path_, {"0123", "fp32", "cdef"});
  });
  EXPECT_NE(message.find("another config.json"), std::string::npos) << message;
  EXPECT_EQ(ContextCache(path_, {"0123", "fp32", "89ab"}).size(), 1u);
}

TEST_F(ContextCacheTest, AFileThatSaysNoConfigurationIsRead) {
  Write();
  EXPECT_EQ(ContextCache(path_, {"0123", "fp32", "89ab"}).Read("doc 1").tokens, context_.tokens);
}

TEST_F(ContextCacheTest, AChangedByteIsRefused) {
  Write();
  const ContextCache cache(path_, identity_);
  const std::string file = path_ + "/00000000.safetensors";
  std::string bytes = test::ReadFile(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 0x40);
  test::WriteFile(file, bytes);
  EXPECT_NE(test::MessageOf([&] { cache.Read("doc 1"); }).find("is damaged"), std::string::npos);
}

TEST_F(ContextCacheTest, AnIndexThatSaysNoSha256IsRead) {
  Write();
  test::WriteFile(path_ + "/index.jsonl",
                  "{\"id\":\"doc 1\",\"file\":\"00000000.safetensors\",\"tokens\":12,"
                  "\"mask\":\"bidirectional\"}\n");
  EXPECT_EQ(ContextCache(path_, identity_).Read("doc 1").tokens, context_.tokens);
}

TEST_F(ContextCacheTest, AnIndexThatNamesAnIdTwiceIsRefused) {
  Write();
  const std::string index = test::ReadFile(path_ + "/index.jsonl");
  test::WriteFile(path_ + "/index.jsonl", index + index);
  EXPECT_NE(OpenMessage().find("has two lines of the id doc 1"), std::string::npos) << OpenMessage();
}

TEST_F(ContextCacheTest, AnIndexThatListsAnotherMaskOrNumberOfTokensIsRefused) {
  Write();
  for (const char* rest :
       {R"(,"tokens":13,"mask":"bidirectional")", R"(,"tokens":12,"mask":"causal")", R"(,"tokens":-12)"}) {
    WriteIndex(rest);
    EXPECT_NE(OpenMessage().find("than index.jsonl lists"), std::string::npos) << OpenMessage();
  }
}

TEST_F(ContextCacheTest, AnotherMaskAndOtherPositionsAreRefused) {
  Write();
  WriteIndex("");
  const std::string file = path_ + "/00000000.safetensors", sound = test::ReadFile(file);
  EXPECT_EQ(OpenMessage(), "");
  for (const auto& [said, instead] : {std::pair(R"("mask":"bidirectional")", R"("mask":"left_to_right")"),
                                      {R"("first_position":"0")", R"("first_position":"7")"}}) {
    std::string other = sound;
    ASSERT_NE(other.find(said), std::string::npos) << said;
    other.replace(other.find(said), std::string(said).size(), instead);
    ASSERT_EQ(other.size(), sound.size());
    test::WriteFile(file, other);
    EXPECT_NE(OpenMessage(), "") << instead;
  }
}

TEST_F(ContextCacheTest, AnUnknownIdIsRefused) {
  Write();
  const ContextCache cache(path_, identity_);
  EXPECT_EQ(test::CodeOf([&] { cache.Read("doc 2"); }), ErrorCode::kBadInput);
}

TEST_F(ContextCacheTest, AnIdIsThatOfOneText) {
  ContextCacheWriter writer(path_, identity_);
  writer.Add("doc 1", context_);
  EXPECT_EQ(test::CodeOf([&] { writer.Add("doc 1", context_); }), ErrorCode::kBadInput);
}

TEST_F(ContextCacheTest, AFolderThatIsNoneIsRefused) {
  EXPECT_EQ(test::CodeOf([&] { const ContextCache cache(folder_.path(), identity_); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
