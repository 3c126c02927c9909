#include "lib/model/gpt2.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kFp32Numerics;
using test::LivelyModel;
using test::RandomInput;

using test::kCpu;

TEST(Gpt2Test, WithoutBiasesItIsTheModelWithZeroBiases) {
  for (const Numerics& numerics :
       {kFp32Numerics, Numerics{Precision::kBf16, at::kFloat}, Numerics{Precision::kBf16, at::kBFloat16}}) {
    ModelConfig config = test::SmallGpt2(false);
    const auto without = LivelyModel(config, numerics);
    config.biases = Biases::All();
    LanguageModel with(test::MakeBody(config, numerics, kCpu, std::nullopt));
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

TEST(Gpt2Test, InitialWeightsAreThoseOfThePaper) {
  const Gpt2 model(test::SmallGpt2(), kFp32Numerics, kCpu, 7);
  const Gpt2 other(test::SmallGpt2(), kFp32Numerics, kCpu, 8);
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

TEST(Gpt2Test, PositionsOutsideTheTableAreRefused) {
  const ModelConfig config = test::SmallGpt2();
  LanguageModel model(test::MakeBody(config, kFp32Numerics, kCpu, 7));
  EXPECT_EQ(test::CodeOf([&] { model.Loss(RandomInput(config, {256})); }), std::nullopt);
  EXPECT_EQ(test::CodeOf([&] { model.Loss(RandomInput(config, {257})); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
