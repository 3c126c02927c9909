// Decoding with the state of a recurrence.
#include "lib/model/ten_decoder.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/language_model.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::kFp32Numerics;
using test::LivelyModel;
using test::RelativeDifference;
using test::TenKind;
using test::TenOf;

/// What a decoder is told; a state has no use for it.
constexpr int64_t kNoLimit = 1;

std::vector<int64_t> TokensOf(const ModelInput& input) {
  const auto* tokens = input.tokens_n.const_data_ptr<int64_t>();
  return {tokens, tokens + input.tokens_n.numel()};
}

class TenDecoderTest : public testing::TestWithParam<TenKind> {
 protected:
  std::unique_ptr<LanguageModel> NewModel(const Numerics& numerics = kFp32Numerics) const {
    return LivelyModel(TenOf(GetParam().fields), numerics);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, TenDecoderTest, testing::ValuesIn(test::TenKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TenDecoderTest, StepsGiveTheLogitsOfTheWholeSequence) {
  const auto model = NewModel();
  const ModelInput input = test::RandomInput(model->config(), {45});
  const at::Tensor expected = model->Logits(input);
  const std::vector<int64_t> tokens = TokensOf(input);
  const auto decoder = model->NewDecoder(kNoLimit);
  EXPECT_LT(RelativeDifference(decoder->Append({tokens.begin(), tokens.begin() + 7}), expected[6]), 1e-5);
  for (int64_t i = 7; i < 30; ++i) {
    EXPECT_LT(RelativeDifference(decoder->Append({tokens[static_cast<size_t>(i)]}), expected[i]), 1e-5) << i;
  }
  EXPECT_LT(RelativeDifference(decoder->Append({tokens.begin() + 30, tokens.end()}), expected[44]), 1e-5);
  EXPECT_EQ(decoder->length(), 45);
}

/// What is kept between appends is fp32, and is rounded where a pass over the whole sequence rounds it.
TEST_P(TenDecoderTest, StepsOfShortPrecisionsStayWithTheWholeSequence) {
  for (const Numerics& numerics :
       {Numerics{Precision::kBf16, at::kBFloat16}, Numerics{Precision::kBf16, at::kFloat}}) {
    const auto model = NewModel(numerics);
    const ModelInput input = test::RandomInput(model->config(), {40}, 3);
    const at::Tensor expected = model->Logits(input);
    const std::vector<int64_t> tokens = TokensOf(input);
    const auto decoder = model->NewDecoder(kNoLimit);
    decoder->Append({tokens.begin(), tokens.begin() + 11});
    for (int64_t i = 11; i < 40; ++i) {
      EXPECT_LT(RelativeDifference(decoder->Append({tokens[static_cast<size_t>(i)]}), expected[i]), 5e-2)
          << i << (numerics.emulated() ? ", emulated" : "");
    }
  }
}

TEST_P(TenDecoderTest, ASequenceBeginsWithOneToken) {
  const auto model = NewModel();
  const ModelInput input = test::RandomInput(model->config(), {12}, 1);
  const at::Tensor expected = model->Logits(input);
  const auto decoder = model->NewDecoder(kNoLimit);
  int64_t row = 0;
  for (const int64_t token : TokensOf(input)) {
    EXPECT_LT(RelativeDifference(decoder->Append({token}), expected[row]), 1e-5) << row;
    ++row;
  }
}

TEST_P(TenDecoderTest, SequencesAppendedTogetherHaveTheLogitsThatTheyHaveAlone) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit, 3), first = model->NewDecoder(kNoLimit),
             second = model->NewDecoder(kNoLimit);
  decoder->AppendToEach({{1, {7, 3, 9, 20, 21}}, {0, {1, 2, 3, 4}}}, 20);
  decoder->AppendToEach({{0, {5}}, {1, {6}}, {2, {1}}});
  const at::Tensor logits = decoder->AppendToEach({{1, {8, 9}}, {0, {10}}});
  EXPECT_EQ(logits.size(0), 2);
  EXPECT_LT(RelativeDifference(logits[0], first->Append({7, 3, 9, 20, 21, 6, 8, 9})), 1e-5);
  EXPECT_LT(RelativeDifference(logits[1], second->Append({1, 2, 3, 4, 5, 10})), 1e-5);
}

TEST_P(TenDecoderTest, BitsOfAStepDoNotDependOnTheOthers) {
  const auto model = NewModel();
  constexpr int64_t kSequences = 12;
  const auto decoder = model->NewDecoder(kNoLimit, kSequences), alone = model->NewDecoder(kNoLimit);
  std::vector<Continuation> prompts, steps;
  for (int64_t i = 0; i < kSequences; ++i) {
    prompts.push_back({i, {i, 7, 3 * i}});
    steps.push_back({i, {100 + i}});
  }
  for (const Continuation& prompt : prompts) decoder->AppendToEach({prompt});
  decoder->AppendToEach(steps);
  const at::Tensor logits = decoder->AppendToEach(steps);
  for (int64_t i = 0; i < kSequences; ++i) {
    const auto place = static_cast<size_t>(i);
    alone->Fork(0, 0, 0);
    alone->Append(prompts[place].tokens);
    alone->Append(steps[place].tokens);
    EXPECT_TRUE(at::equal(alone->Append(steps[place].tokens), logits[i])) << i;
  }
}

TEST_P(TenDecoderTest, AForkGoesOnFromThePromptAndLeavesTheOriginal) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit, 2), forked = model->NewDecoder(kNoLimit),
             original = model->NewDecoder(kNoLimit);
  for (Decoder* each : {decoder.get(), forked.get(), original.get()}) each->Append({7, 3, 9});
  for (Decoder* each : {decoder.get(), original.get()}) {
    each->Append({11});
    each->Append({12});
  }
  decoder->Fork(0, 1, 3);
  EXPECT_EQ(decoder->length(1), 3);
  EXPECT_TRUE(at::equal(decoder->AppendToEach({{1, {4}}})[0], forked->Append({4})));
  EXPECT_TRUE(at::equal(decoder->Append({13}), original->Append({13})));
  decoder->Fork(1, 1, 3);  // back to where it began
  forked->Fork(0, 0, 3);
  EXPECT_TRUE(at::equal(decoder->AppendToEach({{1, {5}}})[0], forked->Append({5})));
}

TEST_P(TenDecoderTest, ASequenceGoesBackToWhereItsLastPromptEnded) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit, 2), expected = model->NewDecoder(kNoLimit);
  decoder->Append({7});  // a prompt of one token
  decoder->Append({8});
  decoder->Fork(0, 1, 1);
  expected->Append({7});
  EXPECT_TRUE(at::equal(decoder->AppendToEach({{1, {4}}})[0], expected->Append({4})));
  decoder->Append({9, 10});  // a second prompt
  decoder->Append({11});
  decoder->Fork(0, 0, 4);
  expected->Fork(0, 0, 0);
  expected->Append({7});
  expected->Append({8});
  expected->Append({9, 10});
  EXPECT_TRUE(at::equal(decoder->Append({12}), expected->Append({12})));
  decoder->Fork(0, 1, decoder->length());
  EXPECT_TRUE(at::equal(decoder->AppendToEach({{1, {13}}})[0], expected->Append({13})));
}

TEST_P(TenDecoderTest, BackAtNothingASequenceBeginsAnew) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit);
  const at::Tensor expected = decoder->Append({1, 2, 3}).clone();
  decoder->Fork(0, 0, 0);
  EXPECT_EQ(decoder->length(), 0);
  EXPECT_TRUE(at::equal(decoder->Append({1, 2, 3}), expected));
}

TEST_P(TenDecoderTest, AnotherModelOfTheSameWeightsGoesOnFromAnExportedStateBitForBit) {
  const auto model = NewModel(), other = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit, 2);
  decoder->AppendToEach({{1, {7, 3, 9, 4, 5}}});
  decoder->AppendToEach({{1, {6}}});
  const RecurrentState state = decoder->body().ExportState(1);
  EXPECT_EQ(state.tokens, 6);
  const auto imported = other->NewDecoder(kNoLimit);
  imported->Append({1, 2});  // is forgotten
  imported->body().ImportState(0, state);
  EXPECT_EQ(imported->length(), 6);
  const at::Tensor behind = decoder->LogitsBehind(1).clone();
  EXPECT_TRUE(at::equal(imported->LogitsBehind(0), behind));
  const at::Tensor next = decoder->AppendToEach({{1, {8}}})[0].clone();
  EXPECT_TRUE(at::equal(imported->Append({8}), next));
  imported->Fork(0, 0, 6);  // back to where it was imported
  EXPECT_TRUE(at::equal(imported->Append({8}), next));
}

TEST_P(TenDecoderTest, LogitsBehindASequenceAreThoseOfItsLastAppend) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit, 2);
  const at::Tensor logits = decoder->AppendToEach({{0, {7, 3, 9}}, {1, {4}}}).clone();
  EXPECT_LT(RelativeDifference(decoder->LogitsBehind(0), logits[0]), 1e-6);
  EXPECT_LT(RelativeDifference(decoder->LogitsBehind(1), logits[1]), 1e-6);
}

TEST_P(TenDecoderTest, SizesDoNotGrowWithTheSequence) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit);
  decoder->Append({1});
  const int64_t state_bytes = SizeOf(decoder->body().ExportState(0));
  const int64_t activation_bytes = model->memory().activation_bytes;
  for (int64_t i = 0; i < 200; ++i) decoder->Append({i});
  EXPECT_EQ(SizeOf(decoder->body().ExportState(0)), state_bytes);
  EXPECT_EQ(model->memory().activation_bytes, activation_bytes);
}

TEST_P(TenDecoderTest, APromptOfThousandsOfTokensGivesTheLogitsOfOnePass) {
  const auto model = NewModel();
  const ModelInput input = test::RandomInput(model->config(), {8200}, 2);
  const at::Tensor hidden_nd = model->body().Forward(input, Keep::kNothing);
  const at::Tensor expected = model->LogitsOf(hidden_nd.narrow(0, 8199, 1))[0];
  model->ReleaseActivations();
  const auto decoder = model->NewDecoder(kNoLimit);
  EXPECT_LT(RelativeDifference(decoder->Append(TokensOf(input)), expected), 1e-5);
  decoder->Append({1});
  decoder->Fork(0, 0, 8200);  // a prompt for all the pieces that it goes through in
}

TEST_P(TenDecoderTest, AStateThatIsNotOfTheModelIsRefused) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit);
  decoder->Append({1, 2, 3});
  const RecurrentState good = decoder->body().ExportState(0);
  std::vector<RecurrentState> bad(6, good);
  bad[0].layers.pop_back();
  bad[1].layers[1].scan_z = good.layers[1].scan_z.narrow(0, 0, 2);
  bad[2].hidden_d = at::Tensor();
  bad[3].init = "another";
  bad[4].layers[0].windows.emplace_back();
  bad[5].tokens = -1;
  for (const RecurrentState& state : bad) {
    EXPECT_EQ(CodeOf([&] { decoder->body().ImportState(0, state); }), ErrorCode::kBadInput);
  }
  if (good.layers[0].windows.empty()) return;
  RecurrentState another_count = good;
  another_count.layers[2].windows[3].seen = 4;
  EXPECT_EQ(CodeOf([&] { decoder->body().ImportState(0, another_count); }), ErrorCode::kBadInput);
}

TEST_P(TenDecoderTest, AnIdOutsideTheVocabularyIsRefused) {
  const auto model = NewModel();
  const auto decoder = model->NewDecoder(kNoLimit);
  EXPECT_EQ(CodeOf([&] { decoder->Append({1, 300}); }), ErrorCode::kBadInput);
}

TEST(RecurrentStateTest, KeysAndValuesAreRefusedOfOneKindOfModelAndStatesOfTheOther) {
  const auto ten = LivelyModel(TenOf(test::TenKinds()[0].fields), kFp32Numerics),
             llama = LivelyModel(test::SmallLlama(), kFp32Numerics);
  EXPECT_TRUE(ten->body().carries_state());
  EXPECT_FALSE(llama->body().carries_state());
  const auto recurrent = ten->NewDecoder(kNoLimit), attention = llama->NewDecoder(8);
  recurrent->Append({1});
  const RecurrentState state = recurrent->body().ExportState(0);
  EXPECT_EQ(CodeOf([&] { recurrent->body().Prefill(0, {1}, AttentionMask::kCausal); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { recurrent->body().Export(0); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { recurrent->body().Import(0, {}); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { attention->body().ExportState(0); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { attention->body().ImportState(0, state); }), ErrorCode::kUsage);
}

TEST(RecurrentStateTest, ACopySharesNoMemory) {
  RecurrentState state;
  state.layers.resize(1);
  state.layers[0].scan_z = at::zeros({4}, at::kFloat);
  state.hidden_d = at::zeros({3}, at::kFloat);
  const RecurrentState copy = CopyTo(at::kCPU, state);
  state.layers[0].scan_z.fill_(1);
  state.hidden_d.fill_(1);
  EXPECT_EQ(copy.layers[0].scan_z.sum().item<float>(), 0);
  EXPECT_EQ(copy.hidden_d.sum().item<float>(), 0);
  EXPECT_EQ(SizeOf(copy), 7 * 4);
}

}  // namespace
}  // namespace trainwright
