#include "lib/model/llama.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/small_models.h"

namespace trainwright {
namespace {

using test::kFp32Numerics;

using test::kCpu;

TEST(LlamaTest, InitialWeightsAreAPureFunctionOfSeedAndName) {
  ModelConfig config = test::SmallLlama();
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

}  // namespace
}  // namespace trainwright
