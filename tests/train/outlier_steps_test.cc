// Runs that skip the updates of steps that stand out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string>

#include "lib/base/error.h"
#include "lib/train/outlier_records.h"
#include "lib/train/trainer.h"
#include "tests/support/memory_shard_set.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::TinyPlan;
using test::TrainingRun;

constexpr int kSteps = 200;

/// Low enough that some steps stand out.
TrainPlan Watchful() {
  TrainPlan plan = TinyPlan();
  plan.schedule.total_steps = kSteps + 50;
  plan.schedule.kind = ScheduleKind::kConstant;
  plan.schedule.peak_lr = 1e-6;  // no trend
  plan.skip_loss_z = plan.skip_grad_z = 1;
  return plan;
}

TEST(OutlierStepsTest, ChangeNoWeightAndCountNoUpdate) {
  const test::MemoryShardSet set = CountingDocuments();
  TrainingRun run(set, Watchful());
  int64_t skipped = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const at::Tensor before = run.model->parameters().values().clone();
    const StepReport report = run.trainer.Step();
    const bool stands_out = report.outlier.loss_z > 1 || report.outlier.grad_norm_z > 1;
    EXPECT_EQ(report.skipped, stands_out) << "step " << step;
    EXPECT_EQ(run.model->parameters().values().equal(before), report.skipped) << "step " << step;
    skipped += report.skipped ? 1 : 0;
    EXPECT_EQ(report.outlier.skipped_steps, skipped);
  }
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(run.trainer.state().updates, kSteps - skipped);
}

TEST(OutlierStepsTest, AreTheSameWhereTheDeviceDecides) {
  const test::MemoryShardSet set = CountingDocuments();
  TrainingRun now(set, Watchful(), false), later(set, Watchful(), true);
  for (int step = 1; step <= kSteps; ++step) {
    const StepReport expected = now.trainer.Step(), report = later.trainer.Step();
    ASSERT_NEAR(report.outlier.loss_z, expected.outlier.loss_z, 1e-2) << "step " << step;
    ASSERT_NEAR(report.outlier.grad_norm_z, expected.outlier.grad_norm_z, 1e-2) << "step " << step;
    ASSERT_EQ(report.skipped, expected.skipped) << "step " << step;
  }
  EXPECT_EQ(later.trainer.state().updates, now.trainer.state().updates);
}

TEST(OutlierStepsTest, ResumeBitForBitFromTheWindowsOfTheState) {
  const test::MemoryShardSet set = CountingDocuments();
  for (const bool defer : {false, true}) {
    TrainingRun whole(set, Watchful(), defer), resumed(set, Watchful(), defer);
    for (int step = 1; step <= 140; ++step) whole.trainer.Step();
    TrainerState state = whole.trainer.state();
    const auto stored = nlohmann::json::parse(EncodeOutlierState(state.outliers).dump());
    state.outliers = DecodeOutlierState(stored, "state");
    resumed.model->parameters().values().copy_(whole.model->parameters().values());
    resumed.trainer.Restore(state);
    for (int step = 141; step <= kSteps; ++step) {
      const StepReport expected = whole.trainer.Step(), report = resumed.trainer.Step();
      EXPECT_EQ(report.outlier.loss_z, expected.outlier.loss_z) << "step " << step;
      EXPECT_EQ(report.skipped, expected.skipped) << "step " << step;
    }
    EXPECT_TRUE(whole.model->parameters().values().equal(resumed.model->parameters().values()));
  }
}

TEST(OutlierStepsTest, RefuseWindowsThatNoRunHasWritten) {
  const nlohmann::json good = EncodeOutlierState(StepOutliers{});
  EXPECT_NO_THROW(DecodeOutlierState(good, "state"));
  const auto refused = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(pointer)] = value;
    EXPECT_THROW(DecodeOutlierState(bad, "state"), Error) << bad;
  };
  refused("/skipped_steps", -1);
  refused("/losses", 7);
  refused("/losses/next", 128);
  refused("/losses/next", 5);
  refused("/losses/values", std::vector<double>(129, 1.0));
  refused("/grad_norms/values", {"much"});
}

}  // namespace
}  // namespace trainwright
