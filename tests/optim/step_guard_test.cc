// Steps whose loss or gradient norm stands out, against z-scores of windows that are kept as lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "lib/base/rng.h"
#include "lib/optim/step_guard.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// The definition of outlier_window.h, by a list of the last values.
class SlowWindow {
 public:
  double ZScore(double value) {
    values_.push_back(value);
    if (values_.size() > kOutlierWindow) values_.pop_front();
    if (values_.size() < kOutlierWindow) return 0;
    long double sum = 0, squares = 0;
    for (const double v : values_) sum += v;
    const long double mean = sum / kOutlierWindow;
    for (const double v : values_) squares += (v - mean) * (v - mean);
    return static_cast<double>((value - mean) / std::sqrt(squares / kOutlierWindow));
  }

 private:
  std::deque<double> values_;
};

TEST(StepGuardTest, ScoresEachStepAgainstTheWindowThatItIsPartOf) {
  StepGuard guard(/*scaled=*/false, {.loss_z = 3, .grad_norm_z = 2.5});
  SlowWindow losses, norms;
  const Rng rng(test::TestSeed(), "outliers");
  int skipped = 0;
  for (uint64_t step = 0; step < 1000; ++step) {
    const double loss = 3 + 0.1 * rng.Normal(2 * step), norm = std::exp(rng.Normal(2 * step + 1));
    const bool taken = guard.Judge(/*finite=*/true, loss, norm);
    const double loss_z = losses.ZScore(loss), norm_z = norms.ZScore(norm);
    EXPECT_NEAR(guard.outliers().loss_z, loss_z, 1e-9);
    EXPECT_NEAR(guard.outliers().grad_norm_z, norm_z, 1e-9);
    if (std::abs(loss_z - 3) < 1e-6 || std::abs(norm_z - 2.5) < 1e-6) continue;
    EXPECT_EQ(taken, !(loss_z > 3 || norm_z > 2.5)) << "step " << step;
    skipped += taken ? 0 : 1;
  }
  EXPECT_GT(skipped, 10);
  EXPECT_NEAR(guard.outliers().skipped_steps, skipped, 1);
}

TEST(StepGuardTest, JudgesNothingBeforeTheWindowIsFull) {
  StepGuard guard(/*scaled=*/false, {.loss_z = 1, .grad_norm_z = 1});
  for (int step = 1; step < kOutlierWindow; ++step) EXPECT_TRUE(guard.Judge(true, step == 90 ? 100 : 3, 1));
  EXPECT_FALSE(guard.Judge(true, 50, 1));
}

TEST(StepGuardTest, SkipsNothingThatFalls) {
  StepGuard guard(/*scaled=*/false, {.loss_z = 1, .grad_norm_z = 1});
  for (int step = 0; step < 300; ++step) EXPECT_TRUE(guard.Judge(true, 10 - 0.01 * step, 5 - 0.01 * step));
}

TEST(StepGuardTest, WithoutLimitsKeepsNoWindow) {
  StepGuard guard(/*scaled=*/false, {});
  for (int step = 0; step < 200; ++step) EXPECT_TRUE(guard.Judge(true, step == 150 ? 1e6 : 1, 1));
  EXPECT_EQ(guard.outliers().losses.count, 0);
}

TEST(StepGuardTest, LeavesStepsThatAreNotFiniteOutOfTheWindows) {
  StepGuard guard(/*scaled=*/true, {.loss_z = 5, .grad_norm_z = 0});
  for (int step = 0; step < 200; ++step) {
    const bool finite = step % 3 != 0;
    EXPECT_EQ(guard.Judge(finite, finite ? 2 + 0.01 * (step % 7) : INFINITY, 1), finite);
  }
  EXPECT_TRUE(std::isfinite(guard.outliers().loss_z));
  EXPECT_FALSE(guard.Judge(true, 4, 1));
}

TEST(StepGuardTest, GoesOnFromItsStateUnderItsOwnLimits) {
  StepGuard first(/*scaled=*/false, {.loss_z = 4, .grad_norm_z = 0}),
      second(/*scaled=*/false, {.loss_z = 4, .grad_norm_z = 0});
  const Rng rng(test::TestSeed(), "losses");
  for (uint64_t step = 0; step < 150; ++step) first.Judge(true, rng.Normal(step), 1);
  StepGuard::State state = first.state();
  state.outliers.limits = {};
  second.set_state(state);
  for (uint64_t step = 150; step < 400; ++step) {
    const double loss = rng.Normal(step) + (step % 50 == 0 ? 9 : 0);
    EXPECT_EQ(first.Judge(true, loss, 1), second.Judge(true, loss, 1));
    EXPECT_EQ(first.outliers().loss_z, second.outliers().loss_z);
  }
  EXPECT_GT(second.outliers().skipped_steps, 3);
}

}  // namespace
}  // namespace trainwright
