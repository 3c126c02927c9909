// Generating behind contexts that are kept.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/eval/context_keeper.h"
#include "lib/eval/generate.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::vector<uint32_t> IdsOfText(const std::string& text) {
  return {text.begin(), text.end()};
}

std::shared_ptr<const CachedContext> ContextOfText(LanguageModel* model, const std::string& text) {
  const std::vector<uint32_t> ids = IdsOfText(text);
  CachedContext context{.tokens = {ids.begin(), ids.end()}};
  const auto decoder = model->NewDecoder(std::ssize(context.tokens));
  decoder->body().Prefill(0, context.tokens, AttentionMask::kCausal);
  context.cache = decoder->body().Export(0);
  return std::make_shared<const CachedContext>(std::move(context));
}

std::vector<std::vector<uint32_t>> IdsBehind(LanguageModel* model, const GenerationOptions& options,
                                             const std::vector<TokenizedPrompt>& prompts,
                                             GenerationCounts* counts) {
  std::vector<std::vector<uint32_t>> ids;
  size_t next = 0;
  *counts = Generate(
      model, options,
      [&](TokenizedPrompt* prompt) {
        if (next == prompts.size()) return false;
        *prompt = prompts[next++];
        return true;
      },
      {}, [&](Generation&& sample) { ids.push_back(std::move(sample.ids)); });
  return ids;
}

TEST(ContextGenerationTest, IdsAreThoseOfThePromptWithTheContextsTokensBeforeIt) {
  const auto model = test::BytesModel();
  const auto context = ContextOfText(model.get(), "Whether 'tis nobler ");
  const GenerationOptions options{.max_tokens = 20, .samples = 2, .batch = 3};
  GenerationCounts with, without;
  const auto behind = IdsBehind(model.get(), options,
                                {{0, IdsOfText("in the mind"), {context}},
                                 {1, IdsOfText("to be"), {}},
                                 {2, IdsOfText("or not"), {context}}},
                                &with);
  const auto computed = IdsBehind(model.get(), options,
                                  {{0, IdsOfText("Whether 'tis nobler in the mind")},
                                   {1, IdsOfText("to be")},
                                   {2, IdsOfText("Whether 'tis nobler or not")}},
                                  &without);
  EXPECT_EQ(behind, computed);
  EXPECT_EQ(with.context_tokens, 40u);
  EXPECT_EQ(with.prompt_tokens + with.context_tokens, without.prompt_tokens);
}

TEST(ContextGenerationTest, TheContextCountsAmongTheModelsPositions) {
  const auto model = test::BytesModel();
  const std::string text(static_cast<size_t>(model->config().max_positions), 'a');
  const auto context = ContextOfText(model.get(), text);
  GenerationCounts counts;
  EXPECT_EQ(test::CodeOf([&] {
              IdsBehind(model.get(), {.max_tokens = 1}, {{0, IdsOfText("b"), {context}}}, &counts);
            }),
            ErrorCode::kBadInput);
}

TEST(ContextGenerationTest, TextsOfUnlikeLengthsAreKeptAsEachIsAlone) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path("model"));
  const Checkpoint checkpoint =
      LoadCheckpoint(test::Families(), folder.path("model"), Precision::kFp32, at::Device(at::kCPU));
  ContextKeeper keeper(checkpoint, Precision::kFp32, AttentionMask::kCausal, folder.path("contexts"));
  keeper.Keep("long", IdsOfText("Whether 'tis nobler "));
  keeper.Keep("short", IdsOfText("to be"));
  keeper.Commit();
  const ContextCache cache(folder.path("contexts"), ContextIdentityOf(checkpoint, Precision::kFp32));
  const CachedContext kept = cache.Read("short");
  const auto alone = ContextOfText(checkpoint.model.get(), "to be");
  EXPECT_EQ(kept.tokens, alone->tokens);
  EXPECT_TRUE(at::equal(kept.cache.keys_lgmk, alone->cache.keys_lgmk));
}

/// Of the model of a folder, once a field of its config.json is this.
ContextIdentity IdentityWith(const std::string& folder, const std::string& field,
                             const nlohmann::json& value) {
  const std::string path = folder + "/config.json";
  nlohmann::json config = nlohmann::json::parse(test::ReadFile(path));
  config[field] = value;
  test::WriteFile(path, config.dump());
  const Checkpoint checkpoint =
      LoadCheckpoint(test::Families(), folder, Precision::kFp32, at::Device(at::kCPU));
  return ContextIdentityOf(checkpoint, Precision::kFp32);
}

TEST(ContextIdentityTest, OfTheSameWeightsItDiffersByWhatConfigJsonSaysOfTheComputation) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path("model"));
  const ContextIdentity usual = IdentityWith(folder.path("model"), "rms_norm_eps", 1e-5);
  const ContextIdentity other = IdentityWith(folder.path("model"), "rms_norm_eps", 1e-3);
  EXPECT_EQ(other.model_sha256, usual.model_sha256);
  EXPECT_TRUE(other.HasOtherConfig(usual.config_sha256));
}

TEST(ContextIdentityTest, WhichTokenEndsATextIsNoPartOfIt) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path("model"));
  const ContextIdentity one = IdentityWith(folder.path("model"), "eos_token_id", 5);
  EXPECT_EQ(IdentityWith(folder.path("model"), "eos_token_id", 6), one);
}

}  // namespace
}  // namespace trainwright
