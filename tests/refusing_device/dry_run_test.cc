// What a dry run says of a GPU whose passes are repeated as graphs, on the device that refuses the host.
#include "lib/train/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::kRefusingDevice;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMemoryBytes = int64_t{1} << 30;

class DeviceDryRunTest : public testing::Test {
 protected:
  DryRunRequest Request() const {
    return {.model = test::TinyModel(),
            .plan = test::TinyPlan(Precision::kBf16),
            .device = kRefusingDevice,
            .steps = 10,
            .gpu_available_bytes = kMemoryBytes,
            .free_gpu_bytes = [] { return kMemoryBytes - test::CountsOfDevice().bytes; },
            .optimizers = BuiltInOptimizers(),
            .objectives = BuiltInObjectives()};
  }
  DryRunReport Run(const DryRunRequest& request) const {
    SampleStream stream(&set_, request.plan.stream_options());
    return DryRun(test::Families(), request, {{kMainLoader, &stream}});
  }
  const test::MemoryShardSet set_ = test::CountingDocuments();
};

TEST_F(DeviceDryRunTest, CountsWhatAGraphOfThePassesKeeps) {
  const DryRunReport one_by_one = Run(Request());
  ASSERT_EQ(one_by_one.measurement, DryRunMeasurement::kFullMicroBatch);
  EXPECT_EQ(one_by_one.memory.graphs, 0);
  EXPECT_THAT(FormatDryRun(one_by_one), Not(HasSubstr("graphs of passes")));

  DryRunRequest request = Request();
  request.repeat_passes = [](const Objective&, LanguageModel* model) {
    model->set_graphs(MakeGraphRecorder(test::DeviceGraphs(), 0), {.most_tokens = 64});
  };
  const DryRunReport report = Run(request);
  EXPECT_GT(report.memory.graphs, 0);
  EXPECT_EQ(report.memory.of_model() - report.memory.graphs - report.memory.products,
            one_by_one.memory.of_model() - one_by_one.memory.products);
  EXPECT_THAT(FormatDryRun(report), HasSubstr("graphs of passes"));
  EXPECT_EQ(EncodeDryRun(report).at("memory_bytes").at("graphs"), report.memory.graphs);
}

}  // namespace
}  // namespace trainwright
