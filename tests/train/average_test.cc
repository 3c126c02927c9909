// Runs that keep a moving average of the weights.
#include <gtest/gtest.h>

#include "lib/train/trainer.h"
#include "tests/support/memory_shard_set.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::TinyPlan;
using test::TrainingRun;

TEST(AveragedRunTest, ResumesItsAverageBitForBit) {
  const test::MemoryShardSet set = CountingDocuments();
  for (const bool defer : {false, true}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      TrainPlan plan = TinyPlan(precision);
      plan.optimizer.average_decay = 0.98;
      TrainingRun whole(set, plan, defer), resumed(set, plan, defer);
      for (int step = 1; step <= 15; ++step) whole.trainer.Step();
      resumed.model->parameters().values().copy_(whole.model->parameters().values());
      resumed.model->parameters().RefreshCompute();
      resumed.trainer.Restore(whole.trainer.state());
      for (int step = 16; step <= 30; ++step) whole.trainer.Step(), resumed.trainer.Step();
      EXPECT_TRUE(whole.model->parameters().values().equal(resumed.model->parameters().values()));
      EXPECT_TRUE(whole.trainer.state()
                      .optimizer_state(kAverageState)
                      .equal(resumed.trainer.state().optimizer_state(kAverageState)));
    }
  }
}

TEST(AveragedRunTest, IsTheSameWhereTheDeviceDecides) {
  const test::MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  plan.optimizer.average_decay = 0.9;
  TrainingRun now(set, plan, false), later(set, plan, true);
  for (int step = 1; step <= 10; ++step) now.trainer.Step(), later.trainer.Step();
  const at::Tensor expected = now.trainer.state().optimizer_state(kAverageState),
                   average = later.trainer.state().optimizer_state(kAverageState);
  EXPECT_LT(average.sub(expected).abs().max().item<double>(), 1e-3);
  EXPECT_GT(expected.abs().max().item<double>(), 0.1);
}

}  // namespace
}  // namespace trainwright
