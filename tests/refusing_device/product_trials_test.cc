// Trials of GEMM kernels before the first step, by the seam towards cuBLASLt that the host has: they choose,
// and change nothing else about a run.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/nn/linear/product_chooser.h"
#include "lib/train/product_choice.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::DeviceRun;
using test::DeviceRunSetup;
using test::kRefusingDevice;

struct TrialCase {
  std::string name;
  ModelConfig model;
  FineTuning tuning;
};

void PrintTo(const TrialCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<TrialCase> Cases() {
  ModelConfig llama = test::SmallLlama(), gpt2 = test::SmallGpt2();
  llama.vocab_size = gpt2.vocab_size = test::kTinyVocab;
  const LoraOptions lora = {.rank = 2, .alpha = 4}, dropout = {.rank = 2, .alpha = 4, .dropout = 0.4},
                    dora = {.rank = 2, .alpha = 4, .dropout = 0.4, .dora = true};
  return {{"Whole", llama, {}},
          {"Lora", llama, {.lora = lora}},
          {"LoraDropout", llama, {.lora = dropout}},
          {"LoraBesideBiases", gpt2, {.lora = dropout}},
          {"Dora", llama, {.lora = dora}},
          {"DoraOnNf4", llama, {.lora = dora, .frozen_format = WeightFormat::kNf4}},
          {"LoraOnInt8", llama, {.lora = lora, .frozen_format = WeightFormat::kInt8}}};
}

class ProductTrialsTest : public testing::TestWithParam<TrialCase> {
 protected:
  /// In bf16, with a chooser.
  std::unique_ptr<DeviceRun> NewRun(const std::shared_ptr<ProductChooser>& chooser) const {
    auto run = std::make_unique<DeviceRun>(set_, setup_, kRefusingDevice);
    run->model->parameters().set_product_chooser(chooser);
    return run;
  }
  static at::Tensor WeightsAfterSteps(DeviceRun* run) {
    while (run->trainer.step() < 3) run->trainer.Step();
    return run->Weights();
  }
  static DeviceRunSetup SetupOfCase() {
    DeviceRunSetup setup = {.model = GetParam().model, .plan = test::TinyPlan(Precision::kBf16)};
    setup.plan.tuning = GetParam().tuning;
    return setup;
  }

  const DeviceRunSetup setup_ = SetupOfCase();
  const test::CpuKernels quick_;
  const test::MemoryShardSet set_ = test::CountingDocuments();
};
INSTANTIATE_TEST_SUITE_P(Tunings, ProductTrialsTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ProductTrialsTest, ARunThatTriedEndsInTheWeightsOfOneThatWasToldTheChoices) {
  const auto trying = std::make_shared<ProductChooser>();
  const auto tried = NewRun(trying);
  TryProducts(setup_.plan, tried->model.get(), trying.get());
  ASSERT_FALSE(trying->choices().empty());
  const auto told = NewRun(std::make_shared<ProductChooser>(trying->choices()));
  EXPECT_TRUE(WeightsAfterSteps(tried.get()).equal(WeightsAfterSteps(told.get())));
}

}  // namespace
}  // namespace trainwright
