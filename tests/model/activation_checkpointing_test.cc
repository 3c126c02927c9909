// Activations that are computed again in the backward pass: same bits, less memory.
#include "lib/spec/activation_checkpointing.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lib/base/error.h"
#include "tests/model/families.h"
#include "tests/model/gradient_checks.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::LivelyModel;
using test::RandomInput;

constexpr ActivationCheckpointing kKinds[] = {
    ActivationCheckpointing::kLeast, ActivationCheckpointing::kSelective, ActivationCheckpointing::kFull};

struct CheckpointedCase {
  std::string name;
  ModelConfig config;
};

void PrintTo(const CheckpointedCase& family, std::ostream* out) {
  *out << family.name;
}

/// On one thread: more gain nothing on tensors this small, and lose much on a busy machine.
class CheckpointedModelTest : public testing::TestWithParam<CheckpointedCase> {
 protected:
  CheckpointedModelTest() { at::set_num_threads(1); }
  ~CheckpointedModelTest() override { at::set_num_threads(threads_); }

  const test::TemporaryFolder folder_;

 private:
  const int threads_ = at::get_num_threads();
};

INSTANTIATE_TEST_SUITE_P(Families, CheckpointedModelTest,
                         testing::Values(CheckpointedCase{"llama", test::SmallLlama()},
                                         CheckpointedCase{"mistral", test::SmallMistral()},
                                         CheckpointedCase{"qwen2", test::SmallQwen2()},
                                         CheckpointedCase{"biased_llama", test::SmallBiasedLlama()},
                                         CheckpointedCase{"gpt2", test::SmallGpt2()},
                                         CheckpointedCase{"gpt2_without_biases", test::SmallGpt2(false)},
                                         CheckpointedCase{"neox", test::SmallNeox()},
                                         CheckpointedCase{"neox_sequential", test::SmallNeox(false)}),
                         [](const auto& info) { return info.param.name; });

TEST_P(CheckpointedModelTest, LossAndGradientsAreThoseOfKeepingAllBitForBit) {
  const ModelConfig& config = GetParam().config;
  test::ExpectTheSameRecomputedAndOffloaded(
      [&](const Numerics& numerics) { return LivelyModel(config, numerics); },
      {Numerics{Precision::kFp32, at::kFloat}, Numerics{Precision::kBf16, at::kBFloat16},
       Numerics{Precision::kBf16, at::kFloat}, Numerics{Precision::kFp16, at::kFloat}},
      RandomInput(config, {30, 1, 20}), RandomInput(config, {14, 3}, 1));
}

TEST_P(CheckpointedModelTest, MemoryIsThatOfOneLayerForWhatIsComputedAgain) {
  const ModelConfig& config = GetParam().config;
  const int64_t tokens = 131, layers = config.num_layers;
  const ModelInput input = RandomInput(config, {70, 1, 60});
  const auto bytes = [&](ActivationCheckpointing kind) {
    const auto model = LivelyModel(config, test::kFp32Numerics);
    model->set_activation_checkpointing(kind);
    model->LossAndGradients(input, 1.0);
    return model->memory().activation_bytes;
  };
  const int64_t all = bytes(ActivationCheckpointing::kNo);
  const int64_t mlp = config.intermediate_size * (config.activation == Activation::kSwiglu ? 2 : 1);
  const int64_t query = config.num_heads * config.head_dim, key = config.num_kv_heads * config.head_dim;
  const int64_t attention =
      (query + 2 * key) + query + config.num_heads + (config.parallel_residual ? 0 : config.hidden_size);
  const int64_t fp32 = 4;
  EXPECT_EQ(bytes(ActivationCheckpointing::kLeast) - all, layers * tokens * config.intermediate_size * fp32);
  EXPECT_EQ(all - bytes(ActivationCheckpointing::kSelective), (layers - 1) * tokens * mlp * fp32);
  EXPECT_EQ(all - bytes(ActivationCheckpointing::kFull), (layers - 1) * tokens * (mlp + attention) * fp32);
}

TEST_P(CheckpointedModelTest, WithOffloadTheMemoryOfOneLayerServesAllAndTheOthersGoOutAndIn) {
  const ModelConfig& config = GetParam().config;
  const int64_t layers = config.num_layers;
  const ModelInput input = RandomInput(config, {70, 1, 60});
  for (const ActivationCheckpointing kind :
       {ActivationCheckpointing::kLeast, ActivationCheckpointing::kNo, ActivationCheckpointing::kSelective,
        ActivationCheckpointing::kFull}) {
    const auto run = [&](OffloadStack* stack) {
      const auto model = LivelyModel(config, test::kFp32Numerics);
      model->set_activation_checkpointing(kind);
      model->set_offload(stack);
      model->LossAndGradients(input, 1.0);
      return model->memory().activation_bytes;
    };
    const auto stack = MakeOffloadStack(at::Device(at::kCPU), folder_.path());
    const int64_t saved = run(nullptr) - run(stack.get());
    EXPECT_GT(saved, 0);
    EXPECT_EQ(stack->counts().out_bytes, saved) << layers << " layers, kind " << int(kind);
    EXPECT_EQ(stack->counts().in_bytes, saved);
  }
}

TEST_P(CheckpointedModelTest, APassThatEndedEarlyLeavesNothingForTheNext) {
  const ModelConfig& config = GetParam().config;
  const ModelInput input = RandomInput(config, {30, 20});
  const auto stack = MakeOffloadStack(at::Device(at::kCPU), folder_.path());
  const auto gradients = [&](OffloadStack* offload, bool disturbed) {
    const auto model = LivelyModel(config, test::kFp32Numerics);
    model->set_offload(offload);
    if (disturbed) offload->Push({at::Tensor(model->parameters().values())}, 0);
    model->parameters().ZeroGradients();
    model->LossAndGradients(input, 1.0);
    return model->parameters().gradients().clone();
  };
  EXPECT_TRUE(at::equal(gradients(stack.get(), true), gradients(nullptr, false)));
}

TEST_P(CheckpointedModelTest, AdaptersBesideFrozenWeightsGetTheSameGradients) {
  const ModelConfig& config = GetParam().config;
  ModelInput input = RandomInput(config, {40, 33});
  input.dropout = DropoutPosition{9, 1, {{0, 0}}};
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4}) {
    const auto run = [&](ActivationCheckpointing kind, bool offload = false) {
      const auto stack = offload ? MakeOffloadStack(at::Device(at::kCPU), folder_.path()) : nullptr;
      const LoraOptions options{.rank = 2, .alpha = 4, .dropout = 0.3};
      const auto model = MakeModel(test::Families(), config, Precision::kBf16, at::Device(at::kCPU), 5,
                                   AttentionBackend::kAuto, FineTuning{options, format});
      // B of a fresh adapter is zero, which would hide most gradients.
      for (const Parameter& parameter : model->parameters().all()) {
        if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
      }
      model->parameters().RefreshCompute();
      model->set_activation_checkpointing(kind);
      model->set_offload(stack.get());
      model->parameters().ZeroGradients();
      model->LossAndGradients(input, 1.0);
      return model->parameters().gradients().clone();
    };
    const at::Tensor gradients = run(ActivationCheckpointing::kNo);
    EXPECT_TRUE(at::equal(run(ActivationCheckpointing::kFull, true), gradients));
    EXPECT_GT(gradients.abs().max().item<double>(), 0);
    for (const ActivationCheckpointing kind : kKinds)
      EXPECT_TRUE(at::equal(run(kind), gradients)) << int(kind);
  }
}

TEST(ActivationCheckpointingTest, AnUnknownKindIsRefusedByName) {
  try {
    ParseActivationCheckpointing("some", "--checkpoint-activations");
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.object(), "--checkpoint-activations");
  }
}

}  // namespace
}  // namespace trainwright
