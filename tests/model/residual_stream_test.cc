// Transformers whose residual stream is stored in bf16, beside those that store it in fp32.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "tests/model/families.h"
#include "tests/model/gradient_checks.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"

namespace trainwright {
namespace {

using test::LivelyModel;
using test::RandomInput;
using test::RelativeDifference;

struct StreamCase {
  std::string name;
  ModelConfig config;
};

void PrintTo(const StreamCase& family, std::ostream* out) {
  *out << family.name;
}

/// \param storage bf16, or fp32 that holds rounded values
Numerics WithStream(Precision residual, at::ScalarType storage = at::kBFloat16) {
  return {.precision = Precision::kBf16, .storage = storage, .residual = residual};
}

/// On one thread: more gain nothing on tensors this small.
class ResidualStreamTest : public testing::TestWithParam<StreamCase> {
 protected:
  ResidualStreamTest() { at::set_num_threads(1); }
  ~ResidualStreamTest() override { at::set_num_threads(threads_); }
  const ModelConfig& config() const { return GetParam().config; }

 private:
  const int threads_ = at::get_num_threads();
};

INSTANTIATE_TEST_SUITE_P(Families, ResidualStreamTest,
                         testing::Values(StreamCase{"llama", test::SmallLlama()},
                                         StreamCase{"qwen2", test::SmallQwen2()},
                                         StreamCase{"gpt2", test::SmallGpt2()},
                                         StreamCase{"neox", test::SmallNeox()},
                                         StreamCase{"neox_sequential", test::SmallNeox(false)}),
                         [](const auto& info) { return info.param.name; });

/// Of a micro-batch.
struct Computed {
  double loss;
  at::Tensor gradients;
};
Computed ComputedBy(LanguageModel* model, const ModelInput& input) {
  model->parameters().ZeroGradients();
  const double loss =
      model->LossAndGradients(input, 1.0 / static_cast<double>(input.tokens_n.numel())).loss_nats;
  return {loss, model->parameters().gradients().clone()};
}

TEST_P(ResidualStreamTest, LossAndGradientsAreThoseOfFp32UpToTheRoundingOfBf16) {
  const ModelInput input = RandomInput(config(), {40, 1, 60, 27});
  const Computed exact = ComputedBy(LivelyModel(config(), test::kFp32Numerics).get(), input);
  const auto error = [&](const Numerics& numerics) {
    const Computed computed = ComputedBy(LivelyModel(config(), numerics).get(), input);
    EXPECT_NEAR(computed.loss, exact.loss, 0.01 * exact.loss);
    return RelativeDifference(computed.gradients, exact.gradients);
  };
  // The inner activations, rounded in either case, cost about as much as the stream.
  const double fp32_stream = error(WithStream(Precision::kFp32)),
               bf16_stream = error(WithStream(Precision::kBf16));
  EXPECT_LT(bf16_stream, 0.06);
  EXPECT_LT(bf16_stream, 4 * fp32_stream);
  EXPECT_GT(bf16_stream, fp32_stream / 4);
}

TEST_P(ResidualStreamTest, EveryParameterGetsTheGradientOfAStreamInFp32) {
  const ModelInput input = RandomInput(config(), {40, 1, 60, 27});
  const auto fp32 = LivelyModel(config(), WithStream(Precision::kFp32)),
             bf16 = LivelyModel(config(), WithStream(Precision::kBf16));
  ComputedBy(fp32.get(), input);
  ComputedBy(bf16.get(), input);
  for (size_t i = 0; i < fp32->parameters().all().size(); ++i) {
    const Parameter &expected = fp32->parameters().all()[i], &parameter = bf16->parameters().all()[i];
    EXPECT_LT(RelativeDifference(parameter.gradient, expected.gradient), 0.15) << parameter.name;
  }
}

TEST_P(ResidualStreamTest, EmulatedBf16FollowsTheSameNumerics) {
  const ModelInput input = RandomInput(config(), {40, 1, 60, 27});
  const Computed native = ComputedBy(LivelyModel(config(), WithStream(Precision::kBf16)).get(), input),
                 emulated =
                     ComputedBy(LivelyModel(config(), WithStream(Precision::kBf16, at::kFloat)).get(), input);
  EXPECT_NEAR(emulated.loss, native.loss, 2e-3 * native.loss);
  EXPECT_LT(RelativeDifference(emulated.gradients, native.gradients), 0.03);
}

TEST_P(ResidualStreamTest, RecomputedAndOffloadedItHasTheSameBits) {
  test::ExpectTheSameRecomputedAndOffloaded(
      [&](const Numerics& numerics) { return LivelyModel(config(), numerics); },
      {WithStream(Precision::kBf16), WithStream(Precision::kBf16, at::kFloat)},
      RandomInput(config(), {30, 1, 20}), RandomInput(config(), {14, 3}, 1));
}

TEST_P(ResidualStreamTest, WhatIsKeptOfItIsHalf) {
  const int64_t tokens = 131;
  const ModelInput input = RandomInput(config(), {70, 1, 60});
  const auto bytes = [&](Precision residual, at::ScalarType storage) {
    const auto model = LivelyModel(config(), WithStream(residual, storage));
    model->LossAndGradients(input, 1.0);
    return model->memory().activation_bytes;
  };
  // Of each layer its input and, where attention and MLP do not read the same, its middle; the last norm's
  // input and the gradient: two bytes less of an element. GEMMs read that gradient, and no copy of it.
  const int64_t streams = config().num_layers * (config().parallel_residual ? 1 : 2) + 2,
                elements = tokens * config().hidden_size;
  EXPECT_EQ(bytes(Precision::kFp32, at::kBFloat16) - bytes(Precision::kBf16, at::kBFloat16),
            2 * elements * streams + 2 * elements);
  EXPECT_EQ(bytes(Precision::kFp32, at::kFloat) - bytes(Precision::kBf16, at::kFloat), 4 * elements);
}

TEST_P(ResidualStreamTest, MicroBatchesAccumulateToOneLargeBatchAndDocumentsAreAlone) {
  const auto model = LivelyModel(config(), WithStream(Precision::kBf16));
  const ModelInput packed = RandomInput(config(), {40, 70, 10, 90});
  const LossSum whole = model->LossAndGradients(packed, 1.0 / 206);
  const at::Tensor expected = model->parameters().gradients().clone();
  model->parameters().ZeroGradients();
  double loss = 0;
  for (size_t k = 0; k < 4; ++k) {
    loss += model->LossAndGradients(test::Document(packed, k), 1.0 / 206).loss_nats;
  }
  EXPECT_NEAR(loss, whole.loss_nats, 1e-3 * loss);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), expected), 0.02);
}

TEST_P(ResidualStreamTest, AdaptersBesideFrozenWeightsGetTheGradientsOfAStreamInFp32) {
  ModelInput input = RandomInput(config(), {40, 33});
  const auto gradients = [&](Precision residual) {
    ComputeKinds kinds;
    kinds.residual = residual;
    const auto model = MakeModel(test::Families(), config(), Precision::kBf16, test::kCpu, 5, kinds,
                                 FineTuning{LoraOptions{.rank = 2, .alpha = 4}});
    for (const Parameter& parameter : model->parameters().all()) {
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
    }
    model->parameters().RefreshCompute();
    return ComputedBy(model.get(), input).gradients;
  };
  EXPECT_LT(RelativeDifference(gradients(Precision::kBf16), gradients(Precision::kFp32)), 0.05);
}

}  // namespace
}  // namespace trainwright
