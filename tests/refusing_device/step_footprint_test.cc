// What a training step moves to a device and leaves there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/refusing_device/device_run.h"
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

/// Without rotary positions, whose tables are copied where a longer sample than all before comes.
DeviceRunSetup Gpt2Setup() {
  DeviceRunSetup setup{.model = test::SmallGpt2()};
  setup.model.vocab_size = test::kTinyVocab;
  return setup;
}

TEST(StepFootprintTest, AStepCopiesTheTensorsOfItsMicroBatchesAndTheOptimizersNumbers) {
  const test::CpuKernels quick;
  const MemoryShardSet set = CountingDocuments();
  for (const int accum : {1, 2, 4}) {
    DeviceRunSetup setup = Gpt2Setup();
    setup.plan.accum = accum;
    DeviceRun run(set, setup, kRefusingDevice);
    // Of the step its numbers, and of each micro-batch tokens, positions, the spans' starts and labels.
    const int64_t expected = 1 + 4 * accum;
    for (int step = 0; step < 20; ++step) {
      test::ResetDeviceCounts();
      run.trainer.Step(/*read=*/false);
      ASSERT_EQ(CountsOfDevice().copies, expected) << "step " << step << " of " << accum << " micro-batches";
    }
  }
}

TEST(StepFootprintTest, AThousandLoggedStepsLeaveNoMoreThanTheFirstHundred) {
  const test::CpuKernels quick;
  const MemoryShardSet set = CountingDocuments();
  DeviceRunSetup setup = Gpt2Setup();
  setup.model.num_layers = 1;
  setup.plan.batch = setup.plan.accum = 1;
  setup.plan.sequence_tokens = 16;
  setup.plan.schedule.total_steps = 1000;
  DeviceRun run(set, setup, kRefusingDevice);
  int64_t most = 0;
  for (int step = 0; step < 100; ++step) {
    run.trainer.Step(/*read=*/true);
    most = std::max(most, CountsOfDevice().bytes);
  }
  test::ResetDeviceCounts();
  for (int step = 100; step < 1000; ++step) {
    run.trainer.Step(/*read=*/true);
    ASSERT_LE(CountsOfDevice().bytes, most) << "step " << step;
  }
}

}  // namespace
}  // namespace trainwright
