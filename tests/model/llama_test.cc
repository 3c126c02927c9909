#include "lib/model/llama.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/inputs.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Document;
using test::MaxDifference;
using test::RandomInput;
using test::RelativeDifference;

const at::Device kCpu(at::kCPU);

ModelConfig SmallConfig() {
  ModelConfig config;
  config.vocab_size = 300;
  config.hidden_size = 48;
  config.intermediate_size = 80;
  config.num_layers = 3;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.max_positions = 256;
  return config;
}

/// A model whose weights are large enough that every term of the maths shows.
std::unique_ptr<Llama> LivelyModel(const ModelConfig& config, const Numerics& numerics) {
  auto model = std::make_unique<Llama>(config, numerics, kCpu, 5);
  model->parameters().values().mul_(5);
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    if (!parameter.decay) value.div_(5);
  }
  model->parameters().RefreshCompute();
  return model;
}

const Numerics kFp32Numerics{Precision::kFp32, at::kFloat};

TEST(LlamaTest, PackedDocumentsHaveTheLogitsThatTheyHaveAlone) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  const ModelInput packed = RandomInput(config, {5, 1, 100, 64, 65, 2, 31});
  const at::Tensor logits = model->Logits(packed);
  for (size_t k = 0; k + 1 < packed.span_starts.size(); ++k) {
    const ModelInput alone = Document(packed, k);
    const at::Tensor inside = logits.narrow(0, packed.span_starts[k], alone.tokens_n.numel());
    EXPECT_LT(MaxDifference(inside, model->Logits(alone)), 1e-5) << "document " << k;
  }
}

TEST(LlamaTest, ChangingOneDocumentLeavesTheGradientsOfAnothersLossAlone) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  ModelInput packed = RandomInput(config, {70, 20, 90});
  packed.labels_n.narrow(0, 0, 70).fill_(-100);
  packed.labels_n.narrow(0, 90, 90).fill_(-100);  // only the middle document has a loss
  model->LossAndGradients(packed, 1.0);
  const at::Tensor before = model->parameters().gradients().clone();
  const ModelInput others = RandomInput(config, {70, 20, 90}, 1);
  packed.tokens_n.narrow(0, 0, 70).copy_(others.tokens_n.narrow(0, 0, 70));
  packed.tokens_n.narrow(0, 90, 90).copy_(others.tokens_n.narrow(0, 90, 90));
  model->parameters().ZeroGradients();
  model->LossAndGradients(packed, 1.0);
  EXPECT_TRUE(at::equal(before, model->parameters().gradients()));
}

TEST(LlamaTest, EmbeddingsOfDocumentsWithoutLossGetNoGradient) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  ModelInput packed = RandomInput(config, {80, 30});
  packed.tokens_n.narrow(0, 0, 80).remainder_(100);
  packed.tokens_n.narrow(0, 80, 30).remainder_(100).add_(100);  // the documents share no token
  packed.labels_n.narrow(0, 0, 80).fill_(-100);
  model->LossAndGradients(packed, 1.0);
  const at::Tensor gradient = model->parameters().Find("model.embed_tokens.weight")->gradient;
  EXPECT_EQ(gradient.narrow(0, 0, 100).abs().max().item<double>(), 0.0);
  EXPECT_GT(gradient.narrow(0, 100, 100).abs().max().item<double>(), 0.0);
}

TEST(LlamaTest, MicroBatchesAccumulateToOneLargeBatch) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  const ModelInput packed = RandomInput(config, {40, 70, 10, 90});
  const LossSum whole = model->LossAndGradients(packed, 1.0 / 206);
  const at::Tensor expected = model->parameters().gradients().clone();
  model->parameters().ZeroGradients();
  double loss = 0;
  for (size_t k = 0; k < 4; ++k) loss += model->LossAndGradients(Document(packed, k), 1.0 / 206).loss_nats;
  EXPECT_EQ(whole.num_labels, 206);
  EXPECT_NEAR(loss, whole.loss_nats, 1e-5 * loss);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), expected), 1e-5);
}

TEST(LlamaTest, LossAloneEqualsTheLossOfTheTrainingPass) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  const ModelInput input = RandomInput(config, {40, 70});
  EXPECT_EQ(model->Loss(input).loss_nats, model->LossAndGradients(input, 1.0).loss_nats);
}

TEST(LlamaTest, SameInputGivesTheSameBits) {
  const ModelConfig config = SmallConfig();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    const ModelInput input = RandomInput(config, {40, 130, 3});
    const auto first = LivelyModel(config, ChooseNumerics(precision, kCpu));
    const auto second = LivelyModel(config, ChooseNumerics(precision, kCpu));
    second->LossAndGradients(RandomInput(config, {200, 90}, 1), 1.0);  // other sizes came before
    second->parameters().ZeroGradients();
    EXPECT_EQ(first->LossAndGradients(input, 1.0).loss_nats, second->LossAndGradients(input, 1.0).loss_nats);
    EXPECT_TRUE(at::equal(first->parameters().gradients(), second->parameters().gradients()))
        << PrecisionName(precision);
  }
}

struct ShortPrecision {
  Numerics numerics;
  double loss_bound, gradient_bound;  // relative to fp32
};

class ShortPrecisionTest : public testing::TestWithParam<ShortPrecision> {};

// bf16 keeps 8 bits (a rounding is off by at most 2^-9 = 0.2 %), fp16 keeps 11 (0.02 %).
TEST_P(ShortPrecisionTest, StaysCloseToFp32) {
  const ModelConfig config = SmallConfig();
  const ModelInput input = RandomInput(config, {40, 130, 3});
  const auto exact = LivelyModel(config, kFp32Numerics);
  const auto rounded = LivelyModel(config, GetParam().numerics);
  const double scale = GetParam().numerics.precision == Precision::kFp16 ? 1024.0 : 1.0;
  const double loss = exact->LossAndGradients(input, 1.0 / 170).loss_nats;
  EXPECT_NEAR(rounded->LossAndGradients(input, scale / 170).loss_nats, loss, GetParam().loss_bound * loss);
  EXPECT_LT(RelativeDifference(rounded->parameters().gradients().div(scale), exact->parameters().gradients()),
            GetParam().gradient_bound);
}

TEST_P(ShortPrecisionTest, IsNotFp32InDisguise) {
  const ModelConfig config = SmallConfig();
  const ModelInput input = RandomInput(config, {40});
  const at::Tensor exact = LivelyModel(config, kFp32Numerics)->Logits(input);
  EXPECT_GT(RelativeDifference(LivelyModel(config, GetParam().numerics)->Logits(input), exact), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Numerics, ShortPrecisionTest,
                         testing::Values(ShortPrecision{{Precision::kBf16, at::kFloat}, 1e-3, 2e-2},
                                         ShortPrecision{{Precision::kBf16, at::kBFloat16}, 1e-3, 2e-2},
                                         ShortPrecision{{Precision::kFp16, at::kFloat}, 1e-4, 3e-3}));

TEST(LlamaTest, EmulatedBf16AgreesWithNativeBf16) {
  const ModelConfig config = SmallConfig();
  const ModelInput input = RandomInput(config, {40, 130, 3});
  const at::Tensor exact = LivelyModel(config, kFp32Numerics)->Logits(input);
  const at::Tensor native = LivelyModel(config, {Precision::kBf16, at::kBFloat16})->Logits(input);
  const at::Tensor emulated = LivelyModel(config, {Precision::kBf16, at::kFloat})->Logits(input);
  // Same rounding points: the two differ by less than either differs from fp32.
  EXPECT_LT(RelativeDifference(emulated, native), RelativeDifference(native, exact));
}

TEST(LlamaTest, DecoderGivesTheLogitsOfTheWholeSequence) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  const ModelInput input = RandomInput(config, {90});
  const at::Tensor expected = model->Logits(input);
  const std::vector<int64_t> ids(input.tokens_n.const_data_ptr<int64_t>(),
                                 input.tokens_n.const_data_ptr<int64_t>() + 90);
  const auto decoder = model->NewDecoder(90);
  EXPECT_LT(MaxDifference(decoder->Append({ids.begin(), ids.begin() + 70}), expected[69]), 1e-4);
  for (int64_t i = 70; i < 85; ++i)
    EXPECT_LT(MaxDifference(decoder->Append({ids[i]}), expected[i]), 1e-4) << i;
  EXPECT_LT(MaxDifference(decoder->Append({ids.begin() + 85, ids.end()}), expected[89]), 1e-4);
  EXPECT_EQ(decoder->length(), 90);
}

TEST(LlamaTest, InitialWeightsAreAPureFunctionOfSeedAndName) {
  ModelConfig config = SmallConfig();
  const Llama model(config, kFp32Numerics, kCpu, 7);
  config.num_layers = 5;
  const Llama deeper(config, kFp32Numerics, kCpu, 7);
  const Llama other(config, kFp32Numerics, kCpu, 8);
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  EXPECT_TRUE(at::equal(model.parameters().Find(name)->value, deeper.parameters().Find(name)->value));
  EXPECT_FALSE(at::equal(other.parameters().Find(name)->value, deeper.parameters().Find(name)->value));
  EXPECT_NEAR(model.parameters().Find("lm_head.weight")->value.std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(model.parameters().Find("model.layers.0.mlp.down_proj.weight")->value.std().item<double>(),
              0.02 / std::sqrt(6.0), 0.001);
}

TEST(LlamaTest, IdsOutsideTheVocabularyAreRefused) {
  const ModelConfig config = SmallConfig();
  Llama model(config, kFp32Numerics, kCpu, 7);
  ModelInput input = RandomInput(config, {10});
  input.tokens_n[4].fill_(300);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(input); }), ErrorCode::kBadInput);
  input = RandomInput(config, {10});
  input.labels_n[4].fill_(300);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(input); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
