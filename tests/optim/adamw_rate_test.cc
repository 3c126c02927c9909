#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/adamw.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr double kRate = 0.5, kLearningRate = 0.01;

/// A parameter of each kind, one of them larger than a block of a shard.
/// \param rate of the second half of them
std::unique_ptr<FlatParameters> MakeRated(double rate) {
  auto parameters = std::make_unique<FlatParameters>();
  parameters->Add("matrix", {300, 256}, true);
  parameters->Add("norm", {48}, false);
  parameters->Add("slow matrix", {16, 48}, true, rate);
  parameters->Add("slow vector", {64}, false, rate);
  parameters->Add("last matrix", {16, 16}, true);
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  const Rng rng(test::TestSeed(), "rated values");
  rng.FillNormal(0, static_cast<uint64_t>(parameters->values().numel()), 1.0,
                 parameters->values().mutable_data_ptr<float>());
  return parameters;
}

/// \param learning_rate of each of several steps
void TakeSteps(FlatParameters* parameters, OptimizerStates states, double learning_rate) {
  AdamW optimizer(parameters, {.states = states}, test::TestSeed());
  for (uint64_t step = 0; step < 3; ++step) {
    at::Tensor& gradients = parameters->gradients();
    Rng(test::TestSeed(), "rated gradients", step)
        .FillNormal(0, static_cast<uint64_t>(gradients.numel()), 1.0, gradients.mutable_data_ptr<float>());
    optimizer.Step(learning_rate);
  }
}

/// The same of steps whose learning rate is read on the device.
void TakeStepsOnDevice(FlatParameters* parameters, OptimizerStates states, double learning_rate) {
  AdamW optimizer(parameters, {.states = states}, test::TestSeed());
  const auto scalar = [](double value) { return at::full({}, value, at::kFloat); };
  for (uint64_t step = 0; step < 3; ++step) {
    at::Tensor& gradients = parameters->gradients();
    Rng(test::TestSeed(), "rated gradients", step)
        .FillNormal(0, static_cast<uint64_t>(gradients.numel()), 1.0, gradients.mutable_data_ptr<float>());
    // What the host says of the rate counts no more.
    optimizer.StepOnDevice(/*learning_rate=*/1e3, OptimizerOptions().beta1,
                           {.divisor = scalar(1),
                            .found_inf = scalar(0),
                            .step = scalar(static_cast<double>(step + 1)),
                            .learning_rate = at::full({}, learning_rate, at::kDouble)});
  }
}

class AdamWRateTest : public ::testing::TestWithParam<OptimizerStates> {};
INSTANTIATE_TEST_SUITE_P(States, AdamWRateTest,
                         ::testing::Values(OptimizerStates::kFp32, OptimizerStates::kBf16),
                         [](const auto& info) { return OptimizerStatesName(info.param); });

TEST_P(AdamWRateTest, MultipliesTheLearningRateOfItsParameterAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto mixed = MakeRated(kRate), whole = MakeRated(1), slow = MakeRated(1);
  TakeSteps(mixed.get(), GetParam(), kLearningRate);
  TakeSteps(whole.get(), GetParam(), kLearningRate);
  TakeSteps(slow.get(), GetParam(), kRate * kLearningRate);
  for (size_t i = 0; i < mixed->all().size(); ++i) {
    const Parameter& parameter = mixed->all()[i];
    const FlatParameters& expected = parameter.name.starts_with("slow") ? *slow : *whole;
    EXPECT_TRUE(at::equal(parameter.value, expected.all()[i].value)) << parameter.name;
  }
}

TEST_P(AdamWRateTest, IsMultipliedByTheRateOnTheDeviceToo) {
  constexpr double kExactRate = 0x1p-7;  // in fp32
  const auto host = MakeRated(kRate), device = MakeRated(kRate);
  TakeSteps(host.get(), GetParam(), kExactRate);
  TakeStepsOnDevice(device.get(), GetParam(), kExactRate);
  EXPECT_TRUE(at::equal(device->values(), host->values()));
}

TEST_P(AdamWRateTest, ShardsTakeTheStepsOfTheWhole) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto whole = MakeRated(kRate);
  TakeSteps(whole.get(), GetParam(), kLearningRate);
  for (const int64_t rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const auto sharded = MakeRated(kRate);
    const ShardLayout layout(sharded->values().numel(), rank, 2);
    sharded->Shard(layout, /*gives_gradients_away=*/false);
    TakeSteps(sharded.get(), GetParam(), kLearningRate);
    ASSERT_GT(layout.size(), 0);
    layout.ForEachPiece([&](const ShardLayout::Piece& piece) {
      EXPECT_TRUE(at::equal(sharded->values().narrow(0, piece.begin, piece.size),
                            whole->values().narrow(0, piece.begin, piece.size)));
    });
  }
}

/// Without a gradient decay is all that a step does.
TEST(AdamWRateOfDecayTest, MultipliesTheDecayToo) {
  const auto parameters = MakeRated(kRate);
  const at::Tensor before = parameters->values().clone();
  parameters->ZeroGradients();
  AdamW optimizer(parameters.get(), {.weight_decay = 0.25});
  optimizer.Step(kLearningRate);
  for (const Parameter& parameter : parameters->all()) {
    const double decay = parameter.decay ? 0.25 * kLearningRate * parameter.rate : 0;
    const at::Tensor expected =
        before.narrow(0, parameter.offset, parameter.size).to(at::kDouble).mul(1 - decay);
    const at::Tensor difference = parameter.value.flatten().to(at::kDouble).sub(expected).abs();
    EXPECT_LE(difference.max().item<double>(), 0x1p-22 * expected.abs().max().item<double>())
        << parameter.name;
  }
}

}  // namespace
}  // namespace trainwright
