#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/base/rng.h"
#include "lib/model/language_model.h"
#include "lib/optim/adamw.h"
#include "lib/optim/clip.h"
#include "lib/optim/loss_scaler.h"
#include "lib/spec/schedule.h"
#include "tests/model/families.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Two matrices with decay around a norm without, all of sizes that need padding.
void MakeParameters(FlatParameters* parameters, Precision precision = Precision::kFp32) {
  parameters->Add("a", {5, 7}, true);
  parameters->Add("norm", {7}, false);
  parameters->Add("b", {3, 7}, true);
  parameters->Allocate({precision, at::kFloat}, at::Device(at::kCPU));
  const Rng rng(test::TestSeed(), "weights");
  uint64_t counter = 0;
  for (const Parameter& parameter : parameters->all()) {
    float* values = parameter.value.mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameter.size; ++i) values[i] = static_cast<float>(rng.Normal(counter++));
  }
}

void FillGradients(FlatParameters* parameters, uint64_t step) {
  parameters->ZeroGradients();
  const Rng rng(test::TestSeed(), "gradients", step);
  uint64_t counter = 0;
  for (const Parameter& parameter : parameters->all()) {
    float* values = parameter.gradient.mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameter.size; ++i) values[i] = static_cast<float>(rng.Normal(counter++));
  }
}

TEST(AdamWTest, FollowsThePublishedAlgorithmAndDecaysMatricesAlone) {
  FlatParameters parameters;
  MakeParameters(&parameters);
  const OptimizerOptions options{.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  AdamW optimizer(&parameters, options);
  // Algorithm 2 of Loshchilov and Hutter 2019 in double, element by element.
  struct Element {
    double value, first = 0, second = 0;
  };
  std::vector<std::vector<Element>> expected;
  for (const Parameter& parameter : parameters.all()) {
    expected.emplace_back();
    for (int64_t i = 0; i < parameter.size; ++i)
      expected.back().push_back({parameter.value.flatten()[i].item<double>()});
  }
  for (int step = 1; step <= 5; ++step) {
    const double rate = 0.01 * step;
    FillGradients(&parameters, step);
    for (size_t p = 0; p < expected.size(); ++p) {
      const Parameter& parameter = parameters.all()[p];
      for (int64_t i = 0; i < parameter.size; ++i) {
        Element& e = expected[p][i];
        const double gradient = parameter.gradient.flatten()[i].item<double>();
        e.first = 0.9 * e.first + 0.1 * gradient;
        e.second = 0.95 * e.second + 0.05 * gradient * gradient;
        if (parameter.name != "norm") e.value -= rate * 0.1 * e.value;
        e.value -= rate * e.first / (1 - std::pow(0.9, step)) /
                   (std::sqrt(e.second / (1 - std::pow(0.95, step))) + 1e-8);
      }
    }
    optimizer.Step(rate);
  }
  EXPECT_EQ(optimizer.steps(), 5);
  for (size_t p = 0; p < expected.size(); ++p) {
    for (int64_t i = 0; i < parameters.all()[p].size; ++i) {
      EXPECT_NEAR(parameters.all()[p].value.flatten()[i].item<double>(), expected[p][i].value, 2e-6);
    }
  }
}

TEST(AdamWTest, FrozenParametersHaveNoStateAndStay) {
  FlatParameters parameters;
  parameters.Add("first", {16, 10}, true);
  parameters.Freeze(parameters.Add("frozen", {32, 20}, true));
  parameters.Add("last", {8, 4}, true);
  parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  parameters.Assign(1, at::full({32, 20}, 0.5));
  parameters.gradients().fill_(1);
  AdamW optimizer(&parameters, {});
  EXPECT_EQ(optimizer.state_bytes(), 2 * (16 * 10 + 8 * 4) * 4);
  optimizer.Step(0.1);
  EXPECT_TRUE(parameters[1].value.eq(0.5).all().item<bool>());
  EXPECT_TRUE(parameters[0].value.lt(0).all().item<bool>() && parameters[2].value.lt(0).all().item<bool>());
}

TEST(AdamWTest, TwoGroupsFollowPyTorchs) {
  std::ifstream file(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/optim/fixtures/adamw.json");
  const nlohmann::json fixture = nlohmann::json::parse(file);
  FlatParameters parameters;
  parameters.Add("matrix", {3, 5}, true);
  parameters.Add("norm", {5}, false);
  parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  const auto fill = [](const at::Tensor& tensor, const nlohmann::json& values) {
    auto* elements = tensor.mutable_data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) elements[i] = values.at(i).get<float>();
  };
  parameters.ZeroGradients();
  for (const Parameter& parameter : parameters.all()) fill(parameter.value, fixture.at(parameter.name));
  AdamW optimizer(&parameters, {.beta1 = 0.5,
                                .beta2 = fixture.at("beta2"),
                                .epsilon = fixture.at("epsilon"),
                                .weight_decay = fixture.at("weight_decay")});
  ASSERT_GE(fixture.at("steps").size(), 5u);
  for (const nlohmann::json& step : fixture.at("steps")) {
    for (const Parameter& parameter : parameters.all()) {
      fill(parameter.gradient, step.at(parameter.name + "_gradient"));
    }
    optimizer.Step(step.at("lr").get<double>(), step.at("beta1").get<double>());
    for (const Parameter& parameter : parameters.all()) {
      for (int64_t i = 0; i < parameter.size; ++i) {
        const auto expected = step.at(parameter.name).at(i).get<float>();
        EXPECT_NEAR(parameter.value.flatten()[i].item<float>(), expected, 1e-6)
            << parameter.name << " " << i << ", step " << optimizer.steps();
      }
    }
  }
}

TEST(AdamWTest, EveryModelDecaysItsMatricesAndNoVector) {
  for (const bool tied : {false, true}) {
    ModelConfig config = test::Families().descriptions().PresetConfig("llama-1m", 300);
    config.tie_embeddings = tied;
    const auto model =
        MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), std::nullopt);
    for (const Parameter& parameter : model->parameters().all()) {
      EXPECT_EQ(parameter.decay, parameter.shape.size() > 1) << parameter.name;
    }
  }
}

TEST(AdamWTest, RestoredStateContinuesBitForBit) {
  FlatParameters whole, resumed;
  MakeParameters(&whole);
  MakeParameters(&resumed);
  AdamW first(&whole, {});
  for (int step = 0; step < 3; ++step) {
    FillGradients(&whole, step);
    first.Step(0.01);
  }
  AdamW second(&resumed, {});
  resumed.values().copy_(whole.values());
  second.exp_avg().copy_(first.exp_avg());
  second.exp_avg_sq().copy_(first.exp_avg_sq());
  second.set_steps(3);
  FillGradients(&whole, 3);
  FillGradients(&resumed, 3);
  first.Step(0.01);
  second.Step(0.01);
  EXPECT_TRUE(whole.values().equal(resumed.values()));
}

// Rounding to nearest would stop: 0.1 % of a second moment is less than half a unit in its last place.
TEST(AdamWTest, ASecondMomentInBf16FallsAtItsRateOnAverage) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  constexpr int kSteps = 500;
  FlatParameters parameters;
  parameters.Add("a", {64, 64}, true);
  parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  AdamW optimizer(&parameters, {.beta2 = 0.999, .states = OptimizerStates::kBf16}, test::TestSeed());
  optimizer.exp_avg_sq().fill_(1.0);
  parameters.ZeroGradients();
  for (int step = 0; step < kSteps; ++step) optimizer.Step(1e-3);
  const double mean = optimizer.exp_avg_sq().to(at::kDouble).mean().item<double>();
  const double expected = std::pow(0.999, kSteps);
  // A rounding deviates by 2^-8 of the value at most; 500 of them add up in an element, 4096 elements
  // average.
  EXPECT_NEAR(mean, expected, 5 * 0x1p-8 * std::sqrt(500.0 / 4096));
  EXPECT_LT(mean, 0.7);
}

TEST(AdamWTest, MomentsInBf16DoNotDependOnThreads) {
  const auto after_steps = [](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    FlatParameters parameters;
    parameters.Add("a", {300, 100}, true);
    parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
    AdamW optimizer(&parameters, {.states = OptimizerStates::kBf16}, 5);
    for (uint64_t step = 0; step < 3; ++step) {
      FillGradients(&parameters, step);
      optimizer.Step(1e-2);
    }
    at::set_num_threads(before);
    return std::vector<at::Tensor>{parameters.values(), optimizer.exp_avg(), optimizer.exp_avg_sq()};
  };
  const std::vector<at::Tensor> one = after_steps(1), three = after_steps(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(three[i])) << i;
}

TEST(AdamWTest, RefreshesTheComputeCopy) {
  FlatParameters parameters;
  MakeParameters(&parameters, Precision::kBf16);
  AdamW optimizer(&parameters, {});
  FillGradients(&parameters, 1);
  optimizer.Step(0.1);
  EXPECT_TRUE(parameters.compute().equal(parameters.values().to(at::kBFloat16).to(at::kFloat)));
}

/// One parameter of 400 elements whose gradients are all the same.
std::unique_ptr<FlatParameters> WithGradients(float gradient) {
  auto parameters = std::make_unique<FlatParameters>();
  parameters->Add("a", {20, 20}, true);
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  parameters->gradients().fill_(gradient);
  return parameters;
}

TEST(ClipTest, ScalesDownToTheNormAndNeverUp) {
  const auto parameters = WithGradients(0.5f);
  ClipResult result = DecideClip(parameters.get(), 1.0, 1.0);
  EXPECT_DOUBLE_EQ(result.norm, 10.0);
  EXPECT_NEAR(result.factor, 0.1, 1e-6);
  result = DecideClip(parameters.get(), 1.0, 50.0);
  EXPECT_EQ(result.factor, 1.0);
}

TEST(ClipTest, UnscalesBeforeItClips) {
  const ClipResult result = DecideClip(WithGradients(0.5f * 1024).get(), 1024.0, 100.0);
  EXPECT_DOUBLE_EQ(result.norm, 10.0);
  EXPECT_EQ(result.factor, 1.0 / 1024);
}

TEST(ClipTest, NonFiniteGradientsAreReported) {
  const auto parameters = WithGradients(2.0f);
  parameters->gradients()[7].fill_(std::numeric_limits<float>::infinity());
  EXPECT_FALSE(DecideClip(parameters.get(), 4.0, 1.0).finite);
}

TEST(AdamWTest, TheFactorOfAStepMultipliesTheGradients) {
  const auto scaled = WithGradients(8.0f), plain = WithGradients(1.0f);
  AdamW first(scaled.get(), {}), second(plain.get(), {});
  first.Step(0.01, 0.9, 0.125);
  second.Step(0.01, 0.9);
  EXPECT_TRUE(scaled->values().equal(plain->values()));
  EXPECT_TRUE(first.exp_avg().equal(second.exp_avg()));
}

TEST(ScheduleTest, WarmsUpLinearlyThenDecaysToTheFinalRatio) {
  for (const ScheduleKind kind : {ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    const ScheduleOptions options{
        .kind = kind, .peak_lr = 2.0, .final_lr_ratio = 0.25, .warmup_steps = 4, .total_steps = 14};
    EXPECT_DOUBLE_EQ(LearningRate(options, 0), 0.5);
    EXPECT_DOUBLE_EQ(LearningRate(options, 3), 2.0);
    EXPECT_DOUBLE_EQ(LearningRate(options, 8), 1.25);  // half-way: the mean of peak and final
    EXPECT_DOUBLE_EQ(LearningRate(options, 13), 0.5);
    EXPECT_DOUBLE_EQ(LearningRate(options, 1000), 0.5);
    for (int64_t step = 4; step < 14; ++step)
      EXPECT_LT(LearningRate(options, step), LearningRate(options, step - 1));
  }
}

TEST(ScheduleTest, CosineIsAQuarterDownAtAThird) {
  const ScheduleOptions options{.kind = ScheduleKind::kCosine,
                                .peak_lr = 1.0,
                                .final_lr_ratio = 0.0,
                                .warmup_steps = 0,
                                .total_steps = 3};
  EXPECT_NEAR(LearningRate(options, 0), 0.75, 1e-15);  // (1 + cos 60 degrees) / 2
}

TEST(ScheduleTest, ConstantStaysAtThePeak) {
  const ScheduleOptions options{.kind = ScheduleKind::kConstant,
                                .peak_lr = 0.5,
                                .final_lr_ratio = 0.1,
                                .warmup_steps = 2,
                                .total_steps = 10};
  EXPECT_DOUBLE_EQ(LearningRate(options, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(options, 5), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(options, 9), 0.5);
}

TEST(ScheduleTest, NamesRoundTripAndOthersAreRefused) {
  for (const char* name : {"constant", "linear", "cosine", "wsd", "one-cycle"}) {
    EXPECT_EQ(ScheduleKindName(ParseScheduleKind(name, "--schedule")), name);
  }
  EXPECT_EQ(test::CodeOf([] { ParseScheduleKind("step", "--schedule"); }), ErrorCode::kUsage);
}

TEST(LossScalerTest, HalvesOnOverflowAndDoublesAfter2000GoodSteps) {
  LossScaler scaler(true);
  EXPECT_EQ(scaler.scale(), 65536.0);
  EXPECT_FALSE(scaler.Update(false));
  EXPECT_EQ(scaler.scale(), 32768.0);
  for (int step = 0; step < 1999; ++step) EXPECT_TRUE(scaler.Update(true));
  EXPECT_EQ(scaler.scale(), 32768.0);
  EXPECT_TRUE(scaler.Update(true));
  EXPECT_EQ(scaler.scale(), 65536.0);
  EXPECT_EQ(scaler.state().skipped_steps, 1);
}

TEST(LossScalerTest, AnOverflowStartsTheCountAgain) {
  LossScaler scaler(true);
  for (int step = 0; step < 1999; ++step) scaler.Update(true);
  scaler.Update(false);
  scaler.Update(true);
  EXPECT_EQ(scaler.scale(), 32768.0);
}

TEST(LossScalerTest, NeverFallsBelowOneNorSkipsWhenOff) {
  LossScaler scaler(true);
  for (int step = 0; step < 100; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 1.0);
  LossScaler off(false);
  EXPECT_TRUE(off.Update(false));
  EXPECT_EQ(off.scale(), 1.0);
}

TEST(LossScalerTest, RestoredStateContinues) {
  LossScaler first(true), second(true);
  first.Update(false);
  for (int step = 0; step < 1500; ++step) first.Update(true);
  second.set_state(first.state());
  for (int step = 0; step < 600; ++step) {
    first.Update(true);
    second.Update(true);
  }
  EXPECT_EQ(first.state(), second.state());
  EXPECT_EQ(second.scale(), 65536.0);
}

}  // namespace
}  // namespace trainwright
