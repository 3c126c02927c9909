// Steps of GRIT on the device that refuses the host: gradients and losses are the CPU's, and nobody waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/objective/grit_texts.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::kCpu;
using test::kRefusingDevice;
using test::RelativeDifference;

struct DeviceGritCase {
  std::string name;
  ModelConfig config;
  OwnOptions own;
};
void PrintTo(const DeviceGritCase& one, std::ostream* out) {
  *out << one.name;
}

class DeviceGritTest : public testing::TestWithParam<DeviceGritCase> {
 protected:
  DeviceGritTest() { own_.emplace("temperature", 0.1); }
  ~DeviceGritTest() override { EXPECT_THAT(CountsOfDevice().violations, testing::IsEmpty()); }

  /// In three micro-batches, so that the vectors of a step come from two passes.
  StepBatches StepOf(const GritObjective& objective) const {
    return test::GritStepOf(objective,
                            {.vocabulary = GetParam().config.vocab_size,
                             .queries = 12,
                             .every_row = 2,
                             .records = own_.at("mode") != "generative"},
                            /*chunk=*/4);
  }
  LanguageModel ModelOn(at::Device device) const {
    return LanguageModel(test::MakeBody(GetParam().config, test::kFp32Numerics, device, 5));
  }

  const test::CpuKernels quick_;
  OwnOptions own_ = GetParam().own;
};

TEST_P(DeviceGritTest, GradientsAndLossesAreTheCpus) {
  const auto objective = test::GritOf(own_);
  const StepBatches step = StepOf(*objective);
  LanguageModel here = ModelOn(kCpu), there = ModelOn(kRefusingDevice);
  const at::Tensor expected = test::RunPasses(*objective, &here, step),
                   sums = test::RunPasses(*objective, &there, step).to(at::kCPU);
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double loss = expected[i].item<double>();
    EXPECT_NEAR(sums[i].item<double>(), loss, 1e-5 * std::abs(loss)) << "term " << i;
  }
  EXPECT_GT(here.parameters().gradients().norm().item<double>(), 0);
  EXPECT_LT(RelativeDifference(there.parameters().gradients().to(at::kCPU), here.parameters().gradients()),
            1e-4);
}

TEST_P(DeviceGritTest, NobodyWaits) {
  const auto objective = test::GritOf(own_);
  const StepBatches step = StepOf(*objective);
  LanguageModel model = ModelOn(kRefusingDevice);
  test::RunPasses(*objective, &model, step);
  test::ResetDeviceCounts();
  test::RunPasses(*objective, &model, step);
  EXPECT_THAT(CountsOfDevice().waits, testing::IsEmpty());
  EXPECT_GT(CountsOfDevice().kernels, 0);
}

std::vector<DeviceGritCase> Cases() {
  const ModelConfig llama = test::SmallLlama();
  return {{"embedding", llama, {{"mode", "embedding"}}},
          {"generative", llama, {{"mode", "generative"}}},
          {"unified", llama, {{"mode", "unified"}}},
          {"symmetric_masked",
           llama,
           {{"mode", "embedding"}, {"symmetric", "on"}, {"mask_false_negatives", "text"}}},
          {"lasttoken", llama, {{"mode", "embedding"}, {"pooling", "lasttoken"}}},
          {"gpt2", test::SmallGpt2(), {{"mode", "unified"}}},
          {"ten", test::TenOf(test::TenKinds()[1].fields), {{"mode", "unified"}, {"attn", "cccc"}}}};
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceGritTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace trainwright
