#include "lib/model/gpt2.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
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
const Numerics kFp32Numerics{Precision::kFp32, at::kFloat};

ModelConfig SmallConfig(bool bias = true) {
  ModelConfig config;
  config.family = ModelFamily::kGpt2;
  config.vocab_size = 300;
  config.hidden_size = 48;
  config.intermediate_size = 80;
  config.num_layers = 3;
  config.num_heads = config.num_kv_heads = 6;
  config.head_dim = 8;
  config.max_positions = 256;
  config.activation = bias ? Activation::kGeluTanh : Activation::kGelu;
  config.bias = bias;
  config.tie_embeddings = true;
  return config;
}

/// A model whose weights are large enough that every term of the maths shows, biases too.
std::unique_ptr<Gpt2> LivelyModel(const ModelConfig& config, const Numerics& numerics) {
  auto model = std::make_unique<Gpt2>(config, numerics, kCpu, 5);
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    const Rng rng(5, "lively/" + parameter.name);
    for (int64_t i = 0; i < parameter.size; ++i) {
      auto* data = value.mutable_data_ptr<float>();
      if (parameter.decay) {
        data[i] *= 5;
      } else {
        data[i] += static_cast<float>(0.2 * rng.Normal(static_cast<uint64_t>(i)));
      }
    }
  }
  model->parameters().RefreshCompute();
  return model;
}

TEST(Gpt2Test, PackedDocumentsHaveTheLogitsThatTheyHaveAlone) {
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

TEST(Gpt2Test, MicroBatchesAccumulateToOneLargeBatch) {
  const ModelConfig config = SmallConfig();
  const auto model = LivelyModel(config, kFp32Numerics);
  const ModelInput packed = RandomInput(config, {40, 70, 10, 90});
  const LossSum whole = model->LossAndGradients(packed, 1.0 / 206);
  const at::Tensor expected = model->parameters().gradients().clone();
  model->parameters().ZeroGradients();
  double loss = 0;
  for (size_t k = 0; k < 4; ++k) loss += model->LossAndGradients(Document(packed, k), 1.0 / 206).loss_nats;
  EXPECT_NEAR(loss, whole.loss_nats, 1e-5 * loss);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), expected), 1e-5);
}

TEST(Gpt2Test, WithoutBiasesItIsTheModelWithZeroBiases) {
  for (const Numerics& numerics : {kFp32Numerics, Numerics{Precision::kBf16, at::kFloat},
                                   Numerics{Precision::kBf16, at::kBFloat16}}) {
    ModelConfig config = SmallConfig(false);
    const auto without = LivelyModel(config, numerics);
    config.bias = true;
    Gpt2 with(config, numerics, kCpu, std::nullopt);
    for (const Parameter& parameter : without->parameters().all()) {
      at::Tensor value = with.parameters().Find(parameter.name)->value;
      value.copy_(parameter.value);
    }
    with.parameters().RefreshCompute();
    const ModelInput input = RandomInput(config, {40, 70});
    EXPECT_EQ(without->LossAndGradients(input, 1.0).loss_nats, with.LossAndGradients(input, 1.0).loss_nats);
    for (const Parameter& parameter : without->parameters().all()) {
      EXPECT_TRUE(at::equal(parameter.gradient, with.parameters().Find(parameter.name)->gradient))
          << parameter.name;
    }
  }
}

TEST(Gpt2Test, SameInputGivesTheSameBits) {
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

struct Gpt2ShortPrecision {
  Numerics numerics;
  double loss_bound, gradient_bound;  // relative to fp32
};

class Gpt2ShortPrecisionTest : public testing::TestWithParam<Gpt2ShortPrecision> {};

// bf16 keeps 8 bits (a rounding is off by at most 2^-9 = 0.2 %), fp16 keeps 11 (0.02 %).
TEST_P(Gpt2ShortPrecisionTest, StaysCloseToFp32AndIsNotFp32) {
  const ModelConfig config = SmallConfig();
  const ModelInput input = RandomInput(config, {40, 130, 3});
  const auto exact = LivelyModel(config, kFp32Numerics);
  const auto rounded = LivelyModel(config, GetParam().numerics);
  const double scale = GetParam().numerics.precision == Precision::kFp16 ? 1024.0 : 1.0;
  const double loss = exact->LossAndGradients(input, 1.0 / 170).loss_nats;
  EXPECT_NEAR(rounded->LossAndGradients(input, scale / 170).loss_nats, loss, GetParam().loss_bound * loss);
  EXPECT_LT(RelativeDifference(rounded->parameters().gradients().div(scale), exact->parameters().gradients()),
            GetParam().gradient_bound);
  EXPECT_GT(RelativeDifference(rounded->Logits(input), exact->Logits(input)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Numerics, Gpt2ShortPrecisionTest,
                         testing::Values(Gpt2ShortPrecision{{Precision::kBf16, at::kFloat}, 1e-3, 2e-2},
                                         Gpt2ShortPrecision{{Precision::kBf16, at::kBFloat16}, 1e-3, 2e-2},
                                         Gpt2ShortPrecision{{Precision::kFp16, at::kFloat}, 1e-4, 3e-3}));

TEST(Gpt2Test, DecoderGivesTheLogitsOfTheWholeSequence) {
  for (const bool bias : {true, false}) {
    const ModelConfig config = SmallConfig(bias);
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
}

TEST(Gpt2Test, InitialWeightsAreThoseOfThePaper) {
  const Gpt2 model(SmallConfig(), kFp32Numerics, kCpu, 7), other(SmallConfig(), kFp32Numerics, kCpu, 8);
  const auto value = [](const Gpt2& from, const std::string& name) {
    return from.parameters().Find("transformer." + name)->value;
  };
  EXPECT_NEAR(value(model, "wte.weight").std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(value(model, "h.1.attn.c_attn.weight").std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(value(model, "h.1.mlp.c_proj.weight").std().item<double>(), 0.02 / std::sqrt(6.0), 0.0005);
  EXPECT_NEAR(value(model, "h.1.attn.c_proj.weight").std().item<double>(), 0.02 / std::sqrt(6.0), 0.0005);
  EXPECT_TRUE(value(model, "h.1.ln_1.weight").eq(1).all().item<bool>());
  EXPECT_TRUE(value(model, "h.1.ln_1.bias").eq(0).all().item<bool>());
  EXPECT_TRUE(value(model, "h.1.mlp.c_fc.bias").eq(0).all().item<bool>());
  EXPECT_FALSE(at::equal(value(model, "wte.weight"), value(other, "wte.weight")));
}

TEST(Gpt2Test, IdsAndPositionsOutsideTheTablesAreRefused) {
  const ModelConfig config = SmallConfig();
  Gpt2 model(config, kFp32Numerics, kCpu, 7);
  ModelInput input = RandomInput(config, {10});
  input.tokens_n[4].fill_(300);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(input); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(RandomInput(config, {256})); }), std::nullopt);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(RandomInput(config, {257})); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
