// A recurrent body: what the layer stack gives to a family without attention, and a decoder whose state is no
// cache of keys and values.
#include "tests/model/toy_family.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "lib/model/language_model.h"
#include "tests/model/gradient_checks.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/spec/toy_recurrent_family.h"
#include "tests/support/support.h"

namespace trainwright::test {
namespace {

using test::kCpu;

ModelConfig ToyConfig(bool tied = false) {
  ModelConfig config;
  config.family = &ToyRecurrent();
  config.vocab_size = 50;
  config.hidden_size = 12;
  config.num_layers = 3;
  config.max_positions = 64;
  config.tie_embeddings = tied;
  config.own = FamilyFields::Of(ToyRecurrentFields{.recurrence_start = 0.75});
  return config;
}

std::unique_ptr<LanguageModel> Toy(const ModelConfig& config, const Numerics& numerics = kFp32Numerics) {
  return Lively(MakeToyBody(config, numerics, kCpu, 5));
}

TEST(ToyFamilyTest, TheBodyHasWhatTheDescriptionSays) {
  for (const bool tied : {false, true}) {
    const ModelConfig config = ToyConfig(tied);
    const auto body = MakeToyBody(config, kFp32Numerics, kCpu, 5);
    EXPECT_EQ(body->parameters().count(), CountParameters(config));
    for (const Parameter& parameter : body->parameters().all()) {
      if (!parameter.name.ends_with("recurrence.weight")) continue;
      EXPECT_TRUE(at::equal(parameter.value, at::full(parameter.shape, 0.75f))) << parameter.name;
    }
  }
}

TEST(ToyFamilyTest, GradientsEqualFiniteDifferences) {
  for (const bool tied : {false, true}) {
    const auto model = Toy(ToyConfig(tied));
    ExpectGradientsOfFiniteDifferences(model.get(), RandomInput(model->config(), {9, 1, 14}), 8e-3, 2e-3);
  }
}

TEST(ToyFamilyTest, PackedDocumentsHaveTheLogitsThatTheyHaveAlone) {
  const auto model = Toy(ToyConfig());
  const ModelInput packed = RandomInput(model->config(), {5, 1, 30});
  const at::Tensor logits = model->Logits(packed);
  for (size_t k = 0; k < 3; ++k) {
    const ModelInput alone = Document(packed, k);
    EXPECT_LT(
        MaxDifference(logits.narrow(0, packed.span_starts[k], alone.tokens_n.numel()), model->Logits(alone)),
        1e-5);
  }
}

TEST(ToyFamilyTest, RecomputedAndOffloadedItHasTheSameGradientsBitForBit) {
  const TemporaryFolder folder;
  const ModelInput input = RandomInput(ToyConfig(), {9, 1, 14});
  for (const Numerics& numerics : {kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}}) {
    const auto gradients = [&](ActivationCheckpointing kind, bool offload) {
      const auto model = Toy(ToyConfig(), numerics);
      model->set_activation_checkpointing(kind);
      model->Offload({.activations = offload}, folder.path());
      model->LossAndGradients(input, 1.0);
      return model->parameters().gradients().clone();
    };
    const at::Tensor expected = gradients(ActivationCheckpointing::kNo, false);
    EXPECT_GT(expected.abs().max().item<double>(), 0);
    for (const bool offload : {false, true}) {
      EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kNo, offload), expected));
      EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kFull, offload), expected));
    }
  }
}

TEST(ToyFamilyTest, DecoderGivesTheLogitsOfTheWholeSequence) {
  const auto model = Toy(ToyConfig());
  const ModelInput input = RandomInput(model->config(), {20});
  const at::Tensor expected = model->Logits(input);
  const auto* tokens = input.tokens_n.const_data_ptr<int64_t>();
  const auto decoder = model->NewDecoder(20);
  EXPECT_LT(MaxDifference(decoder->Append({tokens, tokens + 7}), expected[6]), 1e-5);
  for (int64_t i = 7; i < 15; ++i)
    EXPECT_LT(MaxDifference(decoder->Append({tokens[i]}), expected[i]), 1e-5) << i;
  EXPECT_LT(MaxDifference(decoder->Append({tokens + 15, tokens + 20}), expected[19]), 1e-5);
  EXPECT_EQ(decoder->length(), 20);
}

TEST(ToyFamilyTest, SequencesAppendedTogetherHaveTheLogitsThatTheyHaveAlone) {
  const auto model = Toy(ToyConfig());
  const auto decoder = model->NewDecoder(12, 2);
  const at::Tensor logits = decoder->AppendToEach({{1, {7, 3, 9}}, {0, {1, 2, 3, 4}}}, 20);
  EXPECT_EQ(logits.size(0), 2);
  EXPECT_LT(MaxDifference(logits[0], model->NewDecoder(12)->Append({7, 3, 9})), 1e-5);
  EXPECT_LT(MaxDifference(logits[1], model->NewDecoder(12)->Append({1, 2, 3, 4})), 1e-5);
}

TEST(ToyFamilyTest, AForkedSequenceGoesOnFromThePrefixAndLeavesTheOriginal) {
  const auto model = Toy(ToyConfig());
  const auto decoder = model->NewDecoder(12, 2), expected = model->NewDecoder(12);
  decoder->Append({7, 3, 9});
  decoder->Append({11});
  decoder->Fork(0, 1, 3);
  expected->Append({7, 3, 9});
  EXPECT_TRUE(at::equal(decoder->AppendToEach({{1, {4}}})[0], expected->Append({4})));
  decoder->Fork(0, 0, 3);  // back to the prompt
  expected->Fork(0, 0, 3);
  EXPECT_TRUE(at::equal(decoder->Append({8}), expected->Append({8})));
  EXPECT_EQ(decoder->length(0), 4);
}

TEST(ToyFamilyTest, AdaptersTrainBesideFrozenWeights) {
  const LoraOptions options{.rank = 2, .alpha = 4, .targets = "mix"};
  const auto model = Lively(MakeToyBody(ToyConfig(), kFp32Numerics, kCpu, 5, FineTuning{options}));
  const ModelInput input = RandomInput(model->config(), {9, 1, 14});
  const double before = model->Loss(input).loss_nats;
  for (int step = 0; step < 20; ++step) {
    model->parameters().ZeroGradients();
    model->LossAndGradients(input, 1.0 / 21);
    model->parameters().values().sub_(model->parameters().gradients(), 0.01);
    model->parameters().RefreshCompute();
  }
  EXPECT_LT(model->Loss(input).loss_nats, before);
}

}  // namespace
}  // namespace trainwright::test
