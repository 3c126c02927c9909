// Generating with a model that carries a state, from a state and for one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/eval/generate.h"
#include "lib/eval/prompt_state.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::unique_ptr<LanguageModel> RecurrentModel() {
  return test::LivelyModel(test::TenOf(test::TenKinds()[1].fields), test::kFp32Numerics);
}

std::vector<uint32_t> IdsInText(const std::string& text) {
  return {text.begin(), text.end()};
}

using StatePointer = std::shared_ptr<const RecurrentState>;

std::vector<Generation> SamplesOf(LanguageModel* model, const GenerationOptions& options,
                                  const std::vector<TokenizedPrompt>& prompts,
                                  GenerationCounts* counts = nullptr) {
  std::vector<Generation> samples;
  size_t next = 0;
  const GenerationCounts counted = Generate(
      model, options,
      [&](TokenizedPrompt* prompt) {
        if (next == prompts.size()) return false;
        *prompt = prompts[next++];
        return true;
      },
      {}, [&](Generation&& sample) { samples.push_back(std::move(sample)); });
  if (counts != nullptr) *counts = counted;
  return samples;
}

/// The state behind a text, or behind its greedy sample.
StatePointer StateBehind(LanguageModel* model, GenerationOptions options, const std::string& text) {
  StatePointer taken;
  options.take_state = [&](const RecurrentState& state) {
    taken = std::make_shared<const RecurrentState>(state);
  };
  SamplesOf(model, options, {{.index = 0, .ids = IdsInText(text)}});
  return taken;
}

TEST(StateGenerationTest, BehindAStateIdsAreThoseOfThePromptWithTheStatesTokensBeforeIt) {
  const auto model = RecurrentModel();
  const StatePointer state = StateBehind(model.get(), {.max_tokens = 5}, "Whether 'tis nobler ");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->tokens, 20);
  const GenerationOptions options{.max_tokens = 20};
  GenerationCounts counts;
  const auto behind = SamplesOf(model.get(), options,
                                {{.index = 0, .ids = IdsInText("in the mind"), .state = state},
                                 {.index = 1, .ids = IdsInText("x"), .state = state},
                                 {.index = 2, .ids = {}, .state = state}},
                                &counts);
  const auto whole = SamplesOf(model.get(), options,
                               {{.index = 0, .ids = IdsInText("Whether 'tis nobler in the mind")},
                                {.index = 1, .ids = IdsInText("Whether 'tis nobler x")},
                                {.index = 2, .ids = IdsInText("Whether 'tis nobler ")}});
  ASSERT_EQ(behind.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(behind[i].ids, whole[i].ids) << i;
  EXPECT_EQ(counts.context_tokens, 60u);
  EXPECT_EQ(counts.prompt_tokens, 12u);
  EXPECT_EQ(counts.prefills, 2u);
}

TEST(StateGenerationTest, AStateBehindASampleGoesOnAsALongerSampleWould) {
  const auto model = RecurrentModel();
  const GenerationOptions half{.max_tokens = 8, .state_after = StateAfter::kSample};
  const auto first = SamplesOf(model.get(), half, {{.index = 0, .ids = IdsInText("To be")}});
  const StatePointer state = StateBehind(model.get(), half, "To be");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->tokens, 5 + 8);
  const auto second = SamplesOf(model.get(), half, {{.index = 0, .ids = {}, .state = state}});
  const auto whole = SamplesOf(model.get(), {.max_tokens = 16}, {{.index = 0, .ids = IdsInText("To be")}});
  std::vector<uint32_t> joined = first.at(0).ids;
  joined.insert(joined.end(), second.at(0).ids.begin(), second.at(0).ids.end());
  EXPECT_EQ(joined, whole.at(0).ids);
}

TEST(StateGenerationTest, TheIdThatEndsASampleIsNotInItsState) {
  const auto model = RecurrentModel();
  GenerationOptions options{.max_tokens = 8, .state_after = StateAfter::kSample};
  const auto whole = SamplesOf(model.get(), options, {{.index = 0, .ids = IdsInText("To be")}});
  options.ends = {whole.at(0).ids.at(0)};  // ends at once
  EXPECT_EQ(StateBehind(model.get(), options, "To be")->tokens, 5);
}

TEST(StateGenerationTest, SamplesOfAPromptDoNotDependOnHowManyAreDecodedTogether) {
  const auto model = RecurrentModel();
  GenerationOptions options{.sampling = {.temperature = 1.3},
                            .max_tokens = 15,
                            .samples = 5,
                            .batch = 1,
                            .batch_invariant = true,
                            .seed = 4};
  const StatePointer state = StateBehind(model.get(), {.max_tokens = 1}, "the question");
  const std::vector<TokenizedPrompt> prompts = {{.index = 0, .ids = IdsInText("To be")},
                                                {.index = 1, .ids = IdsInText("x")},
                                                {.index = 2, .ids = {}, .state = state},
                                                {.index = 3, .ids = IdsInText("y"), .state = state}};
  const auto expected = SamplesOf(model.get(), options, prompts);
  ASSERT_EQ(expected.size(), 20u);
  for (const int64_t batch : {2, 7}) {
    options.batch = batch;
    const auto samples = SamplesOf(model.get(), options, prompts);
    ASSERT_EQ(samples.size(), expected.size());
    for (size_t i = 0; i < samples.size(); ++i)
      EXPECT_EQ(samples[i].ids, expected[i].ids) << batch << ", " << i;
  }
}

TEST(StateGenerationTest, ASampleIsLongerThanThePositionsThatTheModelWasTrainedFor) {
  const auto model = RecurrentModel();
  ASSERT_LT(model->config().max_positions, 40);
  const auto samples = SamplesOf(model.get(), {.max_tokens = 40}, {{.index = 0, .ids = IdsInText("To be")}});
  EXPECT_EQ(samples.at(0).ids.size(), 40u);
  EXPECT_EQ(samples.at(0).finish, FinishReason::kLength);
}

TEST(StateGenerationTest, AModelWithKeysAndValuesGivesNoState) {
  const auto model = test::BytesModel();
  EXPECT_EQ(test::CodeOf([&] { StateBehind(model.get(), {.max_tokens = 1}, "To be"); }), ErrorCode::kUsage);
}

TEST(StateSettingsTest, OptionsThatDoNotGoTogetherAreRefusedByName) {
  const auto refusal = [](const GenerateSettings& settings) {
    return test::MessageOf([&] { CheckStateSettings(settings); });
  };
  GenerateSettings good;
  good.prompt = "x";
  good.state_in = "before.state";
  good.state_out = "after.state";
  good.state_after = "sample";
  EXPECT_EQ(refusal(GenerateSettings()), "");
  EXPECT_EQ(refusal(good), "");
  GenerateSettings several = good, samples = good, contexts = good, output = good, alone = good;
  several.prompt.reset();
  EXPECT_TRUE(refusal(several).starts_with("--state-out: ")) << refusal(several);
  samples.samples = 2;
  EXPECT_TRUE(refusal(samples).starts_with("--state-after: ")) << refusal(samples);
  contexts.context_cache = "contexts";
  EXPECT_TRUE(refusal(contexts).starts_with("--state-in: ")) << refusal(contexts);
  output.state_out = "-";
  EXPECT_TRUE(refusal(output).starts_with("--state-out: ")) << refusal(output);
  alone.state_out = "";
  EXPECT_TRUE(refusal(alone).starts_with("--state-after: ")) << refusal(alone);
  GenerateSettings both;
  both.state_in = "-";
  EXPECT_TRUE(refusal(both).starts_with("--state-in: ")) << refusal(both);
}

}  // namespace
}  // namespace trainwright
