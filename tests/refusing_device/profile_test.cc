// What --profile counts of GEMMs that are part of a device's own operators.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/profile_scope.h"
#include "tests/model/inputs.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/cuda_emulation/host_product.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;
using test::kRefusingDevice;
using test::NamedModel;

/// Of the GEMMs of a micro-batch, forward and backward.
int64_t GemmOperations(const ModelConfig& config, at::Device device) {
  const auto model = MakeModel(test::Families(), config, Precision::kBf16, device, 3);
  HostTimeline timeline;
  const ProfiledThread thread(&timeline);
  model->LossAndGradients(test::RandomInput(config, {16, 8, 16}), 1.0);
  return trainwright::GemmOperations(timeline);
}

std::vector<NamedModel> ModelsOfAllEpilogues() {
  std::vector<NamedModel> models = {{"llama", test::SmallLlama()},
                                    {"qwen2", test::SmallQwen2()},
                                    {"gpt2", test::SmallGpt2()},
                                    {"gpt2_without_biases", test::SmallGpt2(/*bias=*/false)},
                                    {"neox", test::SmallNeox()}};
  for (auto& [name, config] : models) {
    config.vocab_size = 128;  // a device pads none
    config.num_layers = 1;
    config.layer_windows.clear();
  }
  return models;
}

TEST(DeviceProfileTest, GemmsWithEpiloguesCountTheOperationsOfThoseWithout) {
  for (const NamedModel& model : ModelsOfAllEpilogues()) {
    const int64_t on_cpu = GemmOperations(model.config, kCpu);
    EXPECT_GT(on_cpu, 0);
    EXPECT_EQ(GemmOperations(model.config, kRefusingDevice), on_cpu) << model.name;
    const test::CpuKernels quick;
    EXPECT_EQ(GemmOperations(model.config, kRefusingDevice), on_cpu) << model.name << ", the CPU's kernels";
  }
}

// Of rows that the library refuses: the parts are computed one by one.
TEST(DeviceProfileTest, AGemmThatTheLibraryHasNotCountsOnce) {
  ModelConfig config = test::SmallGpt2();
  config.vocab_size = 128;
  config.num_layers = 1;
  config.hidden_size = 36;  // no multiple of eight
  config.head_dim = 6;
  config.intermediate_size = 44;
  cuda_emulation::ResetProductCounts();
  EXPECT_EQ(GemmOperations(config, kRefusingDevice), GemmOperations(config, kCpu));
  EXPECT_GT(cuda_emulation::ProductCounts()["unsupported"], 0);
}

}  // namespace
}  // namespace trainwright
