// Steps whose update is repeated as a graph on the device that refuses the host: the weights are those of the
// same kernels one by one.
#include "lib/optim/update_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/profile_scope.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/print_precision.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::DeviceRun;
using test::DeviceRunSetup;
using test::kRefusingDevice;

constexpr int kSteps = 6;

class UpdateGraphTest : public testing::Test {
 protected:
  /// A run whose passes are graphs.
  DeviceRun& Run(const TrainPlan& plan, const ModelConfig& model = test::TinyModel()) {
    const DeviceRunSetup setup = {.model = model, .plan = plan};
    DeviceRun& run = runs_.emplace_back(set_, setup, kRefusingDevice);
    run.model->set_graphs(Recorder(), {.most_tokens = 32});
    return run;
  }
  /// One whose updates are, too.
  DeviceRun& Repeating(const TrainPlan& plan, bool required = true) {
    DeviceRun& run = Run(plan);
    run.trainer.RepeatUpdates(UpdateGraph(Recorder(), required));
    return run;
  }
  static std::unique_ptr<GraphRecorder> Recorder() { return MakeGraphRecorder(test::DeviceGraphs(), 0); }
  static void Step(DeviceRun& run, int steps = kSteps) {
    for (int step = 0; step < steps; ++step) run.trainer.Step(/*read=*/step + 1 == steps);
  }
  static UpdateGraphCounts CountsOf(const DeviceRun& run) { return *run.trainer.update_graph_counts(); }

  std::optional<test::CpuKernels> quick_{std::in_place};
  const test::MemoryShardSet set_ = test::CountingDocuments();
  std::list<DeviceRun> runs_;
};

class UpdateGraphPrecisionTest : public UpdateGraphTest, public testing::WithParamInterface<Precision> {};

TEST_P(UpdateGraphPrecisionTest, WeightsAreThoseOfTheSameKernelsOneByOneBitForBit) {
  if (GetParam() == Precision::kFp16) quick_.reset();  // it takes none
  for (const OptimizerStates states : {OptimizerStates::kFp32, OptimizerStates::kBf16}) {
    TrainPlan plan = test::TinyPlan(GetParam());
    plan.optimizer.states = states;
    DeviceRun &graph = Repeating(plan), &kernels = Run(plan);
    Step(graph);
    Step(kernels);
    EXPECT_TRUE(graph.Weights().equal(kernels.Weights()));
    EXPECT_EQ(CountsOf(graph).recorded, 1);
    EXPECT_EQ(CountsOf(graph).queued, 1);
    EXPECT_EQ(CountsOf(graph).launched, kSteps - 1);
    EXPECT_EQ(kernels.trainer.update_graph_counts(), nullptr);
  }
}
INSTANTIATE_TEST_SUITE_P(Precisions, UpdateGraphPrecisionTest,
                         testing::Values(Precision::kFp32, Precision::kBf16, Precision::kFp16),
                         [](const auto& info) { return PrecisionName(info.param); });

// The scales follow from the values that an update leaves, and the next passes read them.
TEST_F(UpdateGraphTest, MagnitudesOfAdaptersAreScaledByTheNormsThatTheUpdateInAGraphLeaves) {
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4}) {
    TrainPlan plan = test::TinyPlan(Precision::kBf16);
    plan.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4, .dora = true}, .frozen_format = format};
    DeviceRun &graph = Repeating(plan), &kernels = Run(plan);
    Step(graph);
    Step(kernels);
    EXPECT_TRUE(graph.Weights().equal(kernels.Weights()));
    EXPECT_EQ(CountsOf(graph).launched, kSteps - 1);
  }
}

TEST_F(UpdateGraphTest, AStepIsALaunchForEachMicroBatchOneForTheUpdateAndAFewKernelsWhateverTheDepth) {
  for (const int64_t layers : {2, 5}) {
    ModelConfig model = test::TinyModel();
    model.num_layers = layers;
    DeviceRun& run = Run(test::TinyPlan(Precision::kBf16), model);
    run.trainer.RepeatUpdates(UpdateGraph(Recorder()));
    // Until both micro-batches of a step have shapes that are recorded.
    for (int64_t launched = 0, step = 0; launched != 2; ++step) {
      ASSERT_LT(step, 60);
      const PassGraphCounts before = *run.model->graph_counts();
      test::ResetDeviceCounts();
      run.trainer.Step(/*read=*/false);
      const PassGraphCounts& after = *run.model->graph_counts();
      launched = after.recorded == before.recorded ? after.launched - before.launched : 0;
    }
    EXPECT_EQ(CountsOfDevice().graphs, 3);
    // On this device, not on a GPU, zeroing what lies between matrices is a kernel for each layer.
    EXPECT_LE(CountsOfDevice().kernels, 20 + layers);
    EXPECT_THAT(CountsOfDevice().waits, testing::IsEmpty());
  }
}

TEST_F(UpdateGraphTest, AProfileCountsMuonsProductsAsItCountsThoseOfKernels) {
  TrainPlan plan = test::TinyPlan();
  plan.optimizer = BuiltInOptimizers().Find("muon").description.defaults;
  DeviceRun &graph = Repeating(plan), &kernels = Run(plan);
  plan.optimizer = BuiltInOptimizers().Find("adamw").description.defaults;
  DeviceRun& passes = Run(plan);
  const auto operations = [](DeviceRun& run) {
    Step(run, 3);
    HostTimeline timeline;
    const ProfiledThread profiled(&timeline);
    Step(run, 2);
    return GemmOperations(timeline);
  };
  const int64_t of_graph = operations(graph);
  EXPECT_GT(CountsOf(graph).launched, 2);
  EXPECT_EQ(of_graph, operations(kernels));
  EXPECT_GT(of_graph, operations(passes));  // which has none in its update
}

TEST_F(UpdateGraphTest, FollowsTheScheduleOfTheLearningRate) {
  TrainPlan plan = test::TinyPlan();
  plan.schedule.total_steps = kSteps;  // down to its end within them
  DeviceRun &graph = Repeating(plan), &kernels = Run(plan);
  Step(graph);
  Step(kernels);
  EXPECT_TRUE(graph.Weights().equal(kernels.Weights()));
}

TEST_F(UpdateGraphTest, ACycledMomentumIsNeverRecorded) {
  TrainPlan plan = test::TinyPlan();
  plan.schedule.kind = ScheduleKind::kOneCycle;
  plan.schedule.cycle_beta1 = true;
  DeviceRun &graph = Repeating(plan), &kernels = Run(plan);
  Step(graph);
  Step(kernels);
  EXPECT_TRUE(graph.Weights().equal(kernels.Weights()));
  EXPECT_EQ(CountsOf(graph).recorded, 0);
  EXPECT_EQ(CountsOf(graph).queued, kSteps);
}

TEST_F(UpdateGraphTest, AStepThatIsNotFiniteStopsTheWeightsInAGraphToo) {
  DeviceRun& run = Repeating(test::TinyPlan());
  Step(run);
  const at::Tensor before = run.Weights();
  run.model->parameters().values().select(0, 0).fill_(INFINITY);
  run.model->parameters().RefreshCompute();
  run.trainer.Step(/*read=*/false);
  run.trainer.Step(/*read=*/false);
  EXPECT_EQ(CountsOf(run).launched, kSteps + 1);
  EXPECT_TRUE(run.Weights().slice(0, 1).equal(before.slice(0, 1)));
  EXPECT_EQ(test::CodeOf([&] { run.trainer.Look(); }), ErrorCode::kNonFinite);
}

TEST_F(UpdateGraphTest, WhatCannotBeRecordedEndsTheRunOrGoesOnKernelByKernel) {
  const TrainPlan plan = test::TinyPlan();
  DeviceRun &required = Repeating(plan), &wished = Repeating(plan, /*required=*/false), &kernels = Run(plan);
  for (DeviceRun* run : {&required, &wished, &kernels})
    run->model->set_graphs(Recorder(), {.most_graphs = 0});
  Step(kernels);
  const test::FailRecording failing;
  Step(wished);
  EXPECT_TRUE(wished.Weights().equal(kernels.Weights()));
  EXPECT_EQ(CountsOf(wished).launched, 0);
  EXPECT_THAT(CountsOf(wished).off, testing::HasSubstr("no graphs today"));
  try {
    Step(required);
    FAIL() << "recorded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    EXPECT_THAT(error.what(), testing::HasSubstr("the update of a step cannot be recorded"));
  }
}

TEST_F(UpdateGraphTest, NothingIsRecordedBeforeItIsWanted) {
  DeviceRun& run = Run(test::TinyPlan());
  bool wanted = false;
  run.trainer.RepeatUpdates(UpdateGraph(Recorder(), /*required=*/true, [&] { return wanted; }));
  Step(run);
  EXPECT_EQ(CountsOf(run).recorded, 0);
  wanted = true;
  Step(run);
  EXPECT_EQ(CountsOf(run).launched, kSteps);
}

TEST_F(UpdateGraphTest, ARestoredRunEndsInTheBitsOfTheWholeOne) {
  const TrainPlan plan = test::TinyPlan(Precision::kBf16);
  DeviceRun& whole = Repeating(plan);
  Step(whole, 3);
  const TrainerState state = whole.trainer.state();
  DeviceRun& rest = Repeating(plan);
  rest.model->parameters().values().copy_(whole.model->parameters().values());
  rest.model->parameters().RefreshCompute();
  rest.trainer.Restore(state);
  Step(whole, 4);
  Step(rest, 4);
  EXPECT_TRUE(rest.Weights().equal(whole.Weights()));
}

}  // namespace
}  // namespace trainwright
