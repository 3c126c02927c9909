// Passes that are repeated as graphs on the device that refuses the host: the weights are those of the same
// kernels one by one, and what cannot be recorded is told.
#include "lib/model/pass_graphs.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/profile_scope.h"
#include "tests/model/inputs.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/print_precision.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::CountsOfDevice;
using test::DeviceRun;
using test::DeviceRunSetup;
using test::kRefusingDevice;
using test::MemoryShardSet;
using test::NamedModel;
using test::RelativeDifference;
using test::TinyPlan;

constexpr int kSteps = 5;

/// Records nothing: what a model does whose passes are filled up and run kernel by kernel.
PassGraphsOptions WithoutRoom() {
  return {.most_tokens = 32, .most_graphs = 0};
}

class GraphedRunTest : public testing::TestWithParam<std::tuple<NamedModel, Precision>> {
 protected:
  DeviceRunSetup Setup() const {
    const auto& [model, precision] = GetParam();
    return {.model = model.config, .plan = TinyPlan(precision)};
  }
  /// A run whose passes are graphs.
  DeviceRun& Graphed(const DeviceRunSetup& setup, PassGraphsOptions options = {.most_tokens = 32}) {
    DeviceRun& run = runs_.emplace_back(set_, setup, kRefusingDevice);
    run.model->set_graphs(MakeGraphRecorder(test::DeviceGraphs(), 0), options);
    return run;
  }
  static void Step(DeviceRun& run, int steps = kSteps) {
    for (int step = 0; step < steps; ++step) run.trainer.Step(/*read=*/step + 1 == steps);
  }

  const test::CpuKernels quick_;
  const MemoryShardSet set_ = CountingDocuments();
  std::list<DeviceRun> runs_;
};

/// Of each kind of layers.
class PassGraphsTest : public GraphedRunTest {};
/// Of some.
class PassGraphsChangesTest : public GraphedRunTest {};

TEST_P(PassGraphsTest, WeightsAreThoseOfTheSameKernelsOneByOneBitForBit) {
  DeviceRun &graphs = Graphed(Setup()), &kernels = Graphed(Setup(), WithoutRoom());
  Step(graphs);
  Step(kernels);
  EXPECT_TRUE(graphs.Weights().equal(kernels.Weights()));
  EXPECT_GT(graphs.model->graph_counts()->launched, 0);
  EXPECT_EQ(kernels.model->graph_counts()->launched, 0);
}

TEST_P(PassGraphsChangesTest, FillingUpChangesNothingBeyondRounding) {
  DeviceRun& graphs = Graphed(Setup());
  DeviceRun plain(set_, Setup(), kRefusingDevice);
  const at::Tensor start = plain.Weights();
  Step(graphs);
  Step(plain);
  const at::Tensor expected = plain.Weights();
  EXPECT_LT(
      graphs.Weights().sub(expected).norm().item<double>(),
      (std::get<1>(GetParam()) == Precision::kFp32 ? 1e-3 : 0.1) * expected.sub(start).norm().item<double>());
}

TEST_P(PassGraphsChangesTest, ARunThatGoesOnEndsInTheBitsOfTheWholeOne) {
  DeviceRun& whole = Graphed(Setup());
  Step(whole, 3);
  const TrainerState state = whole.trainer.state();
  DeviceRun& rest = Graphed(Setup());
  rest.model->parameters().values().copy_(whole.model->parameters().values());
  rest.model->parameters().RefreshCompute();
  rest.trainer.Restore(state);
  Step(whole, 4);
  Step(rest, 4);
  EXPECT_TRUE(rest.Weights().equal(whole.Weights()));
}

TEST_P(PassGraphsTest, NobodyWaitsAndAMicroBatchIsOneLaunch) {
  DeviceRun& run = Graphed(Setup());
  Step(run);
  const PassGraphCounts before = *run.model->graph_counts();
  test::ResetDeviceCounts();
  for (int step = 0; step < 3; ++step) run.trainer.Step(/*read=*/false);
  const PassGraphCounts& after = *run.model->graph_counts();
  EXPECT_THAT(CountsOfDevice().waits, testing::IsEmpty());
  EXPECT_EQ(CountsOfDevice().graphs, after.launched - before.launched);
  EXPECT_EQ(after.launched + after.queued, before.launched + before.queued + 6);
}

TEST_P(PassGraphsChangesTest, AProfileCountsTheirGemmsAsItCountsThoseOfKernels) {
  DeviceRun &graphs = Graphed(Setup()), &kernels = Graphed(Setup(), WithoutRoom());
  const auto operations = [](DeviceRun& run) {
    Step(run);
    HostTimeline timeline;
    const ProfiledThread profiled(&timeline);
    Step(run);
    return GemmOperations(timeline);
  };
  const int64_t of_graphs = operations(graphs);
  EXPECT_GT(graphs.model->graph_counts()->launched, 0);
  EXPECT_EQ(of_graphs, operations(kernels));
}

TEST_P(PassGraphsChangesTest, AreRecordedAnewWhereThePassesMemoryHasGrown) {
  DeviceRun &graphs = Graphed(Setup()), &kernels = Graphed(Setup(), WithoutRoom());
  Step(graphs);
  Step(kernels);
  const int64_t recorded = graphs.model->graph_counts()->recorded;
  for (DeviceRun* run : {&graphs, &kernels}) {
    run->model->Loss(test::RandomInput(run->model->config(), {16, 16, 16, 16, 16, 16}));  // longer than any
    Step(*run);
  }
  EXPECT_GT(graphs.model->graph_counts()->recorded, recorded);
  EXPECT_TRUE(graphs.Weights().equal(kernels.Weights()));
}

TEST_P(PassGraphsChangesTest, WhatCannotBeRecordedEndsTheRunOrGoesOnKernelByKernel) {
  DeviceRun &required = Graphed(Setup()),
            &wished = Graphed(Setup(), {.most_tokens = 32, .use = GraphUse::kWhereLaunchesBound}),
            &kernels = Graphed(Setup(), WithoutRoom());
  constexpr int kLonger = 2 * kSteps;  // a shape comes three times
  Step(kernels, kLonger);
  const test::FailRecording failing;
  Step(wished, kLonger);
  EXPECT_TRUE(wished.Weights().equal(kernels.Weights()));
  EXPECT_EQ(wished.model->graph_counts()->launched, 0);
  EXPECT_THAT(wished.model->graph_counts()->off, testing::HasSubstr("no graphs today"));
  try {
    Step(required, kLonger);
    FAIL() << "recorded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    EXPECT_THAT(error.what(), testing::HasSubstr("no graphs today"));
    EXPECT_THAT(error.hint(), testing::HasSubstr("--compile auto"));
  }
}

/// A clock by which queueing takes this share of a micro-batch's second.
std::function<double()> ClockOf(double queue_s) {
  return [queue_s, looks = 0]() mutable {
    const double seconds[] = {10, 10 + queue_s, 11};
    return seconds[looks++ % 3];
  };
}

TEST_P(PassGraphsChangesTest, AutoRepeatsPassesWhereQueueingThemTakesMoreThanFourFifthsOfTheirTime) {
  const auto wished = [](double queue_s) -> PassGraphsOptions {
    return {.most_tokens = 32, .use = GraphUse::kWhereLaunchesBound, .clock_s = ClockOf(queue_s)};
  };
  DeviceRun &bound = Graphed(Setup(), wished(0.85)), &busy = Graphed(Setup(), wished(0.75)),
            &kernels = Graphed(Setup(), WithoutRoom());
  constexpr int kLonger = 2 * kSteps;  // a shape comes three times
  for (DeviceRun* run : {&bound, &busy, &kernels}) Step(*run, kLonger);
  EXPECT_GT(bound.model->graph_counts()->launched, 0);
  EXPECT_EQ(bound.model->graph_counts()->off, "");
  EXPECT_EQ(busy.model->graph_counts()->recorded, 0);
  EXPECT_EQ(busy.model->graph_counts()->off,
            "the host takes 750.00 ms to queue a micro-batch that is done after 1000.00 ms");
  EXPECT_TRUE(bound.Weights().equal(kernels.Weights()));
  EXPECT_TRUE(busy.Weights().equal(kernels.Weights()));
}

TEST_P(PassGraphsChangesTest, LackOfMemoryWhileRecordingIsForWhoMakesMicroBatchesSmaller) {
  constexpr int kLonger = 2 * kSteps;
  DeviceRun &required = Graphed(Setup()),
            &wished = Graphed(Setup(), {.most_tokens = 32, .use = GraphUse::kWhereLaunchesBound}),
            &kernels = Graphed(Setup(), WithoutRoom());
  Step(kernels, kLonger);
  const test::FailRecording failing(test::FailRecording::kInTheMiddle);
  Step(wished, kLonger);
  EXPECT_TRUE(wished.Weights().equal(kernels.Weights()));
  EXPECT_EQ(wished.model->graph_counts()->launched, 0);
  EXPECT_EQ(wished.model->graph_counts()->off, "no memory for a graph");
  EXPECT_THROW(Step(required, kLonger), c10::OutOfMemoryError);
}

TEST_P(PassGraphsChangesTest, AMicroBatchThatNoShapeServesHasItsOwnPasses) {
  DeviceRun& run = Graphed(Setup());
  DeviceRun plain(set_, Setup(), kRefusingDevice);
  ModelInput input = test::RandomInput(run.model->config(), {15, 4, 16});
  input.weights_n = at::rand({35}, at::TensorOptions().dtype(at::kFloat));
  std::vector<at::Tensor> gradients;
  for (DeviceRun* of : {&run, &plain}) {
    for (int pass = 0; pass < 3; ++pass) {
      of->model->parameters().ZeroGradients();
      of->model->LossAndGradients(input, 1.0 / 32);
    }
    gradients.push_back(of->model->parameters().gradients().to(at::kCPU));
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
  EXPECT_EQ(run.model->graph_counts()->launched, 0);
}

/// What the host reads of a device's memory while work is recorded would be of another time.
TEST(RecordedWorkTest, RefusesCopiesAndWaits) {
  const at::Tensor x = at::full({3}, 2.0, at::TensorOptions().device(kRefusingDevice));
  const auto recorder = MakeGraphRecorder(test::DeviceGraphs(), 0);
  EXPECT_THAT([&] { recorder->Record([&] { x.cpu(); }); }, testing::Throws<c10::Error>());
  EXPECT_THAT([&] { recorder->Record([&] { x.copy_(at::ones({3})); }); }, testing::Throws<c10::Error>());
}

TEST(RecordedWorkTest, RunsWhenItIsLaunchedAndOnWhatIsThereThen) {
  const auto options = at::TensorOptions().device(kRefusingDevice);
  const at::Tensor x = at::full({3}, 2.0, options), y = at::zeros({3}, options);
  const auto graph = MakeGraphRecorder(test::DeviceGraphs(), 0)->Record([&] { y.add_(x.mul(x).sum()); });
  EXPECT_EQ(y[0].item<double>(), 0.0);
  graph->Launch();
  EXPECT_EQ(y[0].item<double>(), 12.0);
  x.fill_(1.0);
  graph->Launch();
  EXPECT_EQ(y[0].item<double>(), 15.0);
}

std::vector<NamedModel> Transformers(const std::vector<std::string>& names) {
  std::vector<NamedModel> models = test::DeviceModels();
  std::erase_if(models, [&](const NamedModel& model) {
    return std::find(names.begin(), names.end(), model.name) == names.end();
  });
  return models;
}
std::string NameOf(const testing::TestParamInfo<std::tuple<NamedModel, Precision>>& info) {
  return std::get<0>(info.param).name + "_" + PrecisionName(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Families, PassGraphsTest,
                         testing::Combine(testing::ValuesIn(Transformers({"biased_llama", "mistral", "gpt2",
                                                                          "neox"})),
                                          testing::Values(Precision::kFp32, Precision::kBf16)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Families, PassGraphsChangesTest,
                         testing::Combine(testing::ValuesIn(Transformers({"mistral", "gpt2"})),
                                          testing::Values(Precision::kFp32, Precision::kBf16)),
                         NameOf);

}  // namespace
}  // namespace trainwright
