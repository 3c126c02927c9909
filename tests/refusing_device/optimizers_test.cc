// Runs with each optimizer on the device that refuses the host: nobody waits, the weights are the CPU's up to
// rounding, and updates are repeated as graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/optim/update_graph.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::DeviceRun;
using test::DeviceRunSetup;
using test::kCpu;
using test::kRefusingDevice;

class OptimizerOnDeviceTest : public testing::TestWithParam<std::string> {
 protected:
  OptimizerOnDeviceTest() {
    setup_.model = test::TinyModel();
    setup_.model.hidden_size = 64;
    setup_.model.intermediate_size = 80;  // matrices of more than 4096 elements
    setup_.plan.optimizer = BuiltInOptimizers().Find(GetParam()).description.defaults;
    setup_.plan.schedule.peak_lr = GetParam() == "sgd" ? 0.3 : 2e-3;
  }

  const test::MemoryShardSet set_ = test::CountingDocuments();
  DeviceRunSetup setup_;
};
INSTANTIATE_TEST_SUITE_P(BuiltIn, OptimizerOnDeviceTest, testing::Values("sgd", "lion", "muon", "adamw8bit"),
                         [](const auto& info) { return info.param; });

TEST_P(OptimizerOnDeviceTest, MovesTheWeightsAsOnACpu) {
  DeviceRunSetup on_cpu = setup_;
  on_cpu.kinds.equal_spans = AttentionBackend::kAuto;
  DeviceRun here(set_, on_cpu, kCpu), there(set_, setup_, kRefusingDevice);
  const at::Tensor start = here.Weights();
  for (int step = 0; step < 3; ++step) {
    here.trainer.Step();
    there.trainer.Step();
  }
  // Signs of what is near zero differ, and so do iterations in bf16.
  const double tolerance = GetParam() == "lion" || GetParam() == "muon" ? 0.1 : 0.02;
  const at::Tensor expected = here.Weights();
  EXPECT_LT(there.Weights().sub(expected).norm().item<double>(),
            tolerance * expected.sub(start).norm().item<double>());
}

TEST_P(OptimizerOnDeviceTest, NobodyWaitsBetweenTwoLooks) {
  const test::CpuKernels quick;
  DeviceRun run(set_, setup_, kRefusingDevice);
  run.trainer.Step();
  test::ResetDeviceCounts();
  for (int step = 0; step < 3; ++step) run.trainer.Step(/*read=*/false);
  EXPECT_THAT(CountsOfDevice().waits, testing::IsEmpty());
  EXPECT_THAT(CountsOfDevice().violations, testing::IsEmpty());
}

TEST_P(OptimizerOnDeviceTest, UpdatesThatAreRepeatedAsAGraphHaveTheBitsOfTheirKernels) {
  constexpr int kGraphSteps = 5;
  const test::CpuKernels quick;
  const auto recorder = [] { return MakeGraphRecorder(test::DeviceGraphs(), 0); };
  DeviceRun graph(set_, setup_, kRefusingDevice), kernels(set_, setup_, kRefusingDevice);
  graph.trainer.RepeatUpdates(UpdateGraph(recorder()));
  for (DeviceRun* run : {&graph, &kernels}) {
    run->model->set_graphs(recorder(), {.most_tokens = 32});
    for (int step = 1; step <= kGraphSteps; ++step) run->trainer.Step(/*read=*/step == kGraphSteps);
  }
  EXPECT_TRUE(graph.Weights().equal(kernels.Weights()));
  EXPECT_EQ(graph.trainer.update_graph_counts()->launched, kGraphSteps - 1);
}

}  // namespace
}  // namespace trainwright
