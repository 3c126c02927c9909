#include "lib/model/transformer.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Document;
using test::kFp32Numerics;
using test::LivelyModel;
using test::MaxDifference;
using test::RandomInput;
using test::RelativeDifference;

using test::kCpu;

struct Family {
  std::string name;
  ModelConfig config;
  std::string embedding;  ///< name of its token embedding
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

class TransformerTest : public testing::TestWithParam<Family> {
 protected:
  const ModelConfig& config() const { return GetParam().config; }
};

INSTANTIATE_TEST_SUITE_P(
    Families, TransformerTest,
    testing::Values(Family{"llama", test::SmallLlama(), "model.embed_tokens.weight"},
                    Family{"mistral", test::SmallMistral(), "model.embed_tokens.weight"},
                    Family{"qwen2", test::SmallQwen2(), "model.embed_tokens.weight"},
                    Family{"biased_llama", test::SmallBiasedLlama(), "model.embed_tokens.weight"},
                    Family{"dynamic_llama", test::SmallDynamicLlama(), "model.embed_tokens.weight"},
                    Family{"gpt2", test::SmallGpt2(), "transformer.wte.weight"},
                    Family{"gpt2_without_biases", test::SmallGpt2(false), "transformer.wte.weight"},
                    Family{"neox", test::SmallNeox(), "gpt_neox.embed_in.weight"},
                    Family{"neox_sequential", test::SmallNeox(false), "gpt_neox.embed_in.weight"}),
    [](const auto& info) { return info.param.name; });

TEST_P(TransformerTest, PackedDocumentsHaveTheLogitsThatTheyHaveAlone) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const ModelInput packed = RandomInput(config(), {5, 1, 100, 64, 65, 2, 31});
  const at::Tensor logits = model->Logits(packed);
  for (size_t k = 0; k + 1 < packed.span_starts.size(); ++k) {
    const ModelInput alone = Document(packed, k);
    const at::Tensor inside = logits.narrow(0, packed.span_starts[k], alone.tokens_n.numel());
    EXPECT_LT(MaxDifference(inside, model->Logits(alone)), 1e-5) << "document " << k;
  }
}

TEST_P(TransformerTest, ChangingOneDocumentLeavesTheGradientsOfAnothersLossAlone) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  ModelInput packed = RandomInput(config(), {70, 20, 90});
  packed.labels_n.narrow(0, 0, 70).fill_(-100);
  packed.labels_n.narrow(0, 90, 90).fill_(-100);  // only the middle document has a loss
  model->LossAndGradients(packed, 1.0);
  const at::Tensor before = model->parameters().gradients().clone();
  const ModelInput others = RandomInput(config(), {70, 20, 90}, 1);
  packed.tokens_n.narrow(0, 0, 70).copy_(others.tokens_n.narrow(0, 0, 70));
  packed.tokens_n.narrow(0, 90, 90).copy_(others.tokens_n.narrow(0, 90, 90));
  model->parameters().ZeroGradients();
  model->LossAndGradients(packed, 1.0);
  EXPECT_TRUE(at::equal(before, model->parameters().gradients()));
}

TEST_P(TransformerTest, EmbeddingsOfDocumentsWithoutLossGetNoGradient) {
  ModelConfig untied = config();
  untied.tie_embeddings = false;
  const auto model = LivelyModel(untied, kFp32Numerics);
  ModelInput packed = RandomInput(untied, {80, 30});
  packed.tokens_n.narrow(0, 0, 80).remainder_(100);
  packed.tokens_n.narrow(0, 80, 30).remainder_(100).add_(100);  // the documents share no token
  packed.labels_n.narrow(0, 0, 80).fill_(-100);
  model->LossAndGradients(packed, 1.0);
  const at::Tensor gradient = model->parameters().Find(GetParam().embedding)->gradient;
  EXPECT_EQ(gradient.narrow(0, 0, 100).abs().max().item<double>(), 0.0);
  EXPECT_GT(gradient.narrow(0, 100, 100).abs().max().item<double>(), 0.0);
}

TEST_P(TransformerTest, MicroBatchesAccumulateToOneLargeBatch) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const ModelInput packed = RandomInput(config(), {40, 70, 10, 90});
  const LossSum whole = model->LossAndGradients(packed, 1.0 / 206);
  const at::Tensor expected = model->parameters().gradients().clone();
  model->parameters().ZeroGradients();
  double loss = 0;
  for (size_t k = 0; k < 4; ++k) loss += model->LossAndGradients(Document(packed, k), 1.0 / 206).loss_nats;
  EXPECT_EQ(whole.num_labels, 206);
  EXPECT_NEAR(loss, whole.loss_nats, 1e-5 * loss);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), expected), 1e-5);
}

TEST_P(TransformerTest, LossAloneEqualsTheLossOfTheTrainingPass) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const ModelInput input = RandomInput(config(), {40, 70});
  EXPECT_EQ(model->Loss(input).loss_nats, model->LossAndGradients(input, 1.0).loss_nats);
}

TEST_P(TransformerTest, SameInputGivesTheSameBits) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    const ModelInput input = RandomInput(config(), {40, 130, 3});
    const auto first = LivelyModel(config(), ChooseNumerics(precision, kCpu));
    const auto second = LivelyModel(config(), ChooseNumerics(precision, kCpu));
    second->LossAndGradients(RandomInput(config(), {200, 90}, 1), 1.0);  // other sizes came before
    second->parameters().ZeroGradients();
    EXPECT_EQ(first->LossAndGradients(input, 1.0).loss_nats, second->LossAndGradients(input, 1.0).loss_nats);
    EXPECT_TRUE(at::equal(first->parameters().gradients(), second->parameters().gradients()))
        << PrecisionName(precision);
  }
}

TEST_P(TransformerTest, EmulatedBf16AgreesWithNativeBf16) {
  const ModelInput input = RandomInput(config(), {40, 130, 3});
  const at::Tensor exact = LivelyModel(config(), kFp32Numerics)->Logits(input);
  const at::Tensor native = LivelyModel(config(), {Precision::kBf16, at::kBFloat16})->Logits(input);
  const at::Tensor emulated = LivelyModel(config(), {Precision::kBf16, at::kFloat})->Logits(input);
  // Same rounding points: the two differ by less than either differs from fp32.
  EXPECT_LT(RelativeDifference(emulated, native), RelativeDifference(native, exact));
}

using Rows = std::pair<int64_t, int64_t>;

/// The first and the last row of one document whose hidden states another token at `place` changes.
Rows RowsThatSee(int64_t place, const ModelInput& input, LanguageModel* model) {
  ModelInput changed = input;
  changed.tokens_n = input.tokens_n.clone();
  changed.tokens_n[place].add_(1).remainder_(model->config().vocab_size);
  const at::Tensor before = model->body().Forward(input, Keep::kNothing).clone(),
                   after = model->body().Forward(changed, Keep::kNothing);
  Rows rows{-1, -1};
  for (int64_t row = 0; row < before.size(0); ++row) {
    if (at::equal(before[row], after[row])) continue;
    if (rows.first < 0) rows.first = row;
    rows.second = row;
  }
  return rows;
}

// As in the masks of transformers 5: k > q - 13 of the causal one, |q - k| <= 13 of the bidirectional one.
TEST(TransformerWindowTest, ReachesAsFarAsInTransformers) {
  ModelConfig config = test::SmallMistral();
  config.num_layers = 1;
  config.layer_windows = {13};
  const auto model = LivelyModel(config, kFp32Numerics);
  for (const int64_t length : {40, 100}) {  // row by row, and in blocks
    ModelInput input = RandomInput(config, {length});
    EXPECT_EQ(RowsThatSee(20, input, model.get()), Rows(20, 32)) << length;
    input.mask = AttentionMask::kBidirectional;
    EXPECT_EQ(RowsThatSee(20, input, model.get()), Rows(7, 33)) << length;
  }
}

/// The first tokens of a single document.
ModelInput Prefix(const ModelInput& input, int64_t length) {
  ModelInput prefix = input;
  for (at::Tensor* tensor : {&prefix.tokens_n, &prefix.positions_n, &prefix.labels_n}) {
    *tensor = tensor->narrow(0, 0, length);
  }
  prefix.span_starts = {0, static_cast<int32_t>(length)};
  return prefix;
}

TEST_P(TransformerTest, DecoderGivesTheLogitsOfTheWholeSequence) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const ModelInput input = RandomInput(config(), {90});
  const at::Tensor expected = model->Logits(input);
  const std::vector<int64_t> ids(input.tokens_n.const_data_ptr<int64_t>(),
                                 input.tokens_n.const_data_ptr<int64_t>() + 90);
  const auto decoder = model->NewDecoder(90);
  // Where frequencies depend on the length, what counts is the sequence so far.
  const auto expected_after = [&](int64_t length) {
    return config().rope.depends_on_length() ? model->Logits(Prefix(input, length))[length - 1]
                                             : expected[length - 1];
  };
  EXPECT_LT(MaxDifference(decoder->Append({ids.begin(), ids.begin() + 30}), expected_after(30)), 1e-4);
  EXPECT_LT(MaxDifference(decoder->Append({ids.begin() + 30, ids.begin() + 70}), expected_after(70)), 1e-4);
  for (int64_t i = 70; i < 85; ++i) {
    EXPECT_LT(MaxDifference(decoder->Append({ids[i]}), expected_after(i + 1)), 1e-4) << i;
  }
  EXPECT_LT(MaxDifference(decoder->Append({ids.begin() + 85, ids.end()}), expected[89]), 1e-4);
  EXPECT_EQ(decoder->length(), 90);
}

TEST_P(TransformerTest, SequencesContinuedTogetherHaveTheBitsThatTheyHaveAlone) {
  for (const Numerics& numerics : {kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}}) {
    const auto model = LivelyModel(config(), numerics);
    const std::vector<std::vector<int64_t>> prompts = {{7, 3, 9}, {250}, {1, 2, 3, 4, 5, 6, 7, 8}};
    const auto together = model->NewDecoder(12, 3);
    std::vector<std::unique_ptr<Decoder>> alone;
    for (int64_t i = 0; i < 3; ++i) {
      alone.push_back(model->NewDecoder(12));
      EXPECT_TRUE(at::equal(together->AppendToEach({{i, prompts[i]}})[0], alone[i]->Append(prompts[i]))) << i;
    }
    for (int64_t step = 0; step < 3; ++step) {
      const at::Tensor logits =
          together->AppendToEach({{2, {30 + step}}, {0, {10 + step}}, {1, {20 + step}}});
      EXPECT_TRUE(at::equal(logits[0], alone[2]->Append({30 + step}))) << step;
      EXPECT_TRUE(at::equal(logits[1], alone[0]->Append({10 + step}))) << step;
      EXPECT_TRUE(at::equal(logits[2], alone[1]->Append({20 + step}))) << step;
    }
    EXPECT_EQ(together->length(2), 11);
  }
}

TEST(LengthDependentDecoderTest, ASequenceComputedAgainAndThoseBesideItHaveTheBitsThatTheyHaveAlone) {
  const ModelConfig config = test::SmallDynamicLlama();
  for (const Numerics& numerics : {kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}}) {
    const auto model = LivelyModel(config, numerics);
    const ModelInput input = RandomInput(config, {config.rope.original_positions});
    const auto* ids = input.tokens_n.const_data_ptr<int64_t>();
    const std::vector<int64_t> full(ids, ids + input.tokens_n.numel()), few = {7, 3, 9};
    const auto together = model->NewDecoder(60, 2), longer = model->NewDecoder(60),
               shorter = model->NewDecoder(60);
    together->AppendToEach({{0, full}});
    together->AppendToEach({{1, few}});
    longer->Append(full);
    shorter->Append(few);
    for (int64_t step = 0; step < 2; ++step) {
      const at::Tensor logits = together->AppendToEach({{1, {20 + step}}, {0, {10 + step}}});
      ASSERT_EQ(logits.size(0), 2);
      EXPECT_TRUE(at::equal(logits[0], shorter->Append({20 + step}))) << step;
      EXPECT_TRUE(at::equal(logits[1], longer->Append({10 + step}))) << step;
    }
    EXPECT_EQ(together->length(0), config.rope.original_positions + 2);
  }
}

TEST_P(TransformerTest, PromptsAppendedTogetherAndPaddedRowsChangeNoLogits) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  const std::vector<int64_t> one = {7, 3, 9}, other = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto decoder = model->NewDecoder(12, 2);
  at::Tensor logits = decoder->AppendToEach({{1, one}, {0, other}}, 20);
  EXPECT_EQ(logits.size(0), 2);
  EXPECT_LT(MaxDifference(logits[0], model->NewDecoder(12)->Append(one)), 1e-5);
  EXPECT_LT(MaxDifference(logits[1], model->NewDecoder(12)->Append(other)), 1e-5);
  logits = decoder->AppendToEach({{0, {5}}, {1, {6}}}, 8);
  EXPECT_EQ(logits.size(0), 2);
  EXPECT_LT(MaxDifference(logits[1], model->NewDecoder(12)->Append({7, 3, 9, 6})), 1e-5);
}

TEST_P(TransformerTest, AForkedSequenceGoesOnFromThePrefixAndLeavesTheOriginal) {
  const auto model = LivelyModel(config(), kFp32Numerics);
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

TEST_P(TransformerTest, IdsOutsideTheVocabularyAreRefused) {
  const auto model = LivelyModel(config(), kFp32Numerics);
  ModelInput input = RandomInput(config(), {10});
  input.tokens_n[4].fill_(300);
  EXPECT_EQ(test::CodeOf([&] { model->Loss(input); }), ErrorCode::kBadInput);
  input = RandomInput(config(), {10});
  input.labels_n[4].fill_(300);
  EXPECT_EQ(test::CodeOf([&] { model->Loss(input); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { model->NewDecoder(4)->Append({300}); }), ErrorCode::kBadInput);
}

TEST_P(TransformerTest, AnAttentionBackendThatCannotRunIsRefusedBeforeAnythingIsComputed) {
  EXPECT_EQ(test::CodeOf([&] {
              LivelyModel(config(), {Precision::kFp32, at::kFloat, AttentionBackend::kFlash});
            }),
            ErrorCode::kUsage);
}

struct ShortPrecision {
  std::string name;
  Numerics numerics;
  double loss_bound, gradient_bound;  ///< relative to fp32
};

void PrintTo(const ShortPrecision& precision, std::ostream* out) {
  *out << precision.name;
}

class ShortPrecisionTest : public testing::TestWithParam<std::tuple<Family, ShortPrecision>> {
 protected:
  const ModelConfig& config() const { return std::get<0>(GetParam()).config; }
  const ShortPrecision& precision() const { return std::get<1>(GetParam()); }
};

// bf16 keeps 8 bits (a rounding is off by at most 2^-9 = 0.2 %), fp16 keeps 11 (0.02 %).
INSTANTIATE_TEST_SUITE_P(
    Numerics, ShortPrecisionTest,
    testing::Combine(
        testing::Values(Family{"llama", test::SmallLlama(), ""}, Family{"mistral", test::SmallMistral(), ""},
                        Family{"qwen2", test::SmallQwen2(), ""},
                        Family{"biased_llama", test::SmallBiasedLlama(), ""},
                        Family{"gpt2", test::SmallGpt2(), ""}, Family{"neox", test::SmallNeox(), ""},
                        Family{"neox_sequential", test::SmallNeox(false), ""}),
        testing::Values(ShortPrecision{"bf16_emulated", {Precision::kBf16, at::kFloat}, 1e-3, 2e-2},
                        ShortPrecision{"bf16", {Precision::kBf16, at::kBFloat16}, 1e-3, 2e-2},
                        ShortPrecision{"fp16_emulated", {Precision::kFp16, at::kFloat}, 1e-4, 3e-3})),
    [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name; });

TEST_P(ShortPrecisionTest, StaysCloseToFp32) {
  const ModelInput input = RandomInput(config(), {40, 130, 3});
  const auto exact = LivelyModel(config(), kFp32Numerics);
  const auto rounded = LivelyModel(config(), precision().numerics);
  const double scale = precision().numerics.precision == Precision::kFp16 ? 1024.0 : 1.0;
  const double loss = exact->LossAndGradients(input, 1.0 / 170).loss_nats;
  EXPECT_NEAR(rounded->LossAndGradients(input, scale / 170).loss_nats, loss, precision().loss_bound * loss);
  EXPECT_LT(RelativeDifference(rounded->parameters().gradients().div(scale), exact->parameters().gradients()),
            precision().gradient_bound);
}

TEST_P(ShortPrecisionTest, IsNotFp32InDisguise) {
  const ModelInput input = RandomInput(config(), {40});
  const at::Tensor exact = LivelyModel(config(), kFp32Numerics)->Logits(input);
  EXPECT_GT(RelativeDifference(LivelyModel(config(), precision().numerics)->Logits(input), exact), 1e-5);
}

}  // namespace
}  // namespace trainwright
