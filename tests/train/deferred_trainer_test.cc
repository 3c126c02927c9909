// The trainer as it works on a GPU, on the CPU: a step's numbers stay on the device until they are asked for.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lib/base/error.h"
#include "lib/train/trainer.h"
#include "tests/support/print_precision.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::TinyPlan;
using test::TrainingRun;

class DeferredTrainerTest : public testing::TestWithParam<Precision> {};

TEST_P(DeferredTrainerTest, TakesTheStepsThatImmediateDecisionsTake) {
  const test::MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = TinyPlan(GetParam());
  TrainingRun now(set, plan, false), later(set, plan, true);
  for (int step = 0; step < 20; ++step) {
    const StepReport expected = now.trainer.Step(), report = later.trainer.Step(/*read=*/true);
    EXPECT_NEAR(report.loss_nats, expected.loss_nats, 2e-3 * expected.loss_nats) << "step " << step;
    EXPECT_EQ(report.skipped, expected.skipped);
    EXPECT_EQ(report.loss_scale, expected.loss_scale);
  }
  EXPECT_EQ(later.trainer.state().updates, now.trainer.state().updates);
  EXPECT_EQ(later.trainer.state().scaler, now.trainer.state().scaler);
}

INSTANTIATE_TEST_SUITE_P(Precisions, DeferredTrainerTest, testing::Values(Precision::kFp32, Precision::kFp16),
                         [](const auto& info) { return PrecisionName(info.param); });

TEST(DeferredTrainer, ReadsTheDeviceOnlyWhenItIsAsked) {
  const test::MemoryShardSet set = CountingDocuments();
  TrainingRun run(set, TinyPlan(Precision::kFp32), true);
  double last_nats = 0;
  for (int step = 1; step <= 50; ++step) {
    const StepReport report = run.trainer.Step(/*read=*/step % 10 == 0);
    EXPECT_EQ(report.read, step % 10 == 0);
    if (!report.read) {
      EXPECT_EQ(report.loss_nats, last_nats);
    }
    last_nats = report.loss_nats;
  }
  EXPECT_EQ(run.trainer.device_reads(), 5);
}

TEST(DeferredTrainer, NamesTheFirstBadStepAtTheNextLookAndKeepsTheWeightsBeforeIt) {
  const test::MemoryShardSet set = CountingDocuments();
  TrainingRun run(set, TinyPlan(Precision::kFp32), true);
  for (int step = 1; step <= 3; ++step) run.trainer.Step(/*read=*/false);
  at::Tensor norm = run.model->parameters().all()[1].value;
  norm[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor before = run.model->parameters().values().nan_to_num(12345).clone();
  for (int step = 4; step <= 9; ++step) run.trainer.Step(/*read=*/false);
  EXPECT_TRUE(run.model->parameters().values().nan_to_num(12345).equal(before));
  try {
    run.trainer.Step(/*read=*/true);
    FAIL() << "the NaN went unseen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNonFinite);
    EXPECT_EQ(error.place(), "step 4");
  }
}

}  // namespace
}  // namespace trainwright
