#include "lib/run/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMiB = 1 << 20;

/// The steps, from 1, at which a watchdog speaks.
std::vector<int64_t> AlarmSteps(const std::vector<double>& losses_nats, double ratio = 1.5) {
  LossWatchdog watchdog(ratio);
  std::vector<int64_t> steps;
  for (size_t i = 0; i < losses_nats.size(); ++i) {
    const auto step = static_cast<int64_t>(i) + 1;
    if (watchdog.Observe(step, losses_nats[i])) steps.push_back(step);
  }
  return steps;
}

TEST(LossWatchdog, IsSilentWhileTheLossFallsNoisily) {
  std::vector<double> losses;
  for (int i = 0; i < 3000; ++i) losses.push_back(2 + 6 * std::exp(-i / 200.0) + 0.4 * std::sin(i * 1.7));
  EXPECT_THAT(AlarmSteps(losses), IsEmpty());
}

TEST(LossWatchdog, SpeaksAtTheThirdHighLossInARow) {
  std::vector<double> losses(100, 3.0);
  losses.insert(losses.end(), 5, 6.0);
  EXPECT_THAT(AlarmSteps(losses), ElementsAre(103));
}

TEST(LossWatchdog, OneHardSampleIsNoDivergence) {
  std::vector<double> losses(300, 3.0);
  for (size_t i = 100; i < 300; i += 10) losses[i] = losses[i + 1] = 9.0;
  EXPECT_THAT(AlarmSteps(losses), IsEmpty());
}

TEST(LossWatchdog, TheRatioDecidesWhatIsHigh) {
  std::vector<double> losses(100, 3.0);
  losses.insert(losses.end(), 5, 3.5);
  EXPECT_THAT(AlarmSteps(losses, 1.5), IsEmpty());
  EXPECT_THAT(AlarmSteps(losses, 1.1), ElementsAre(103));
}

TEST(LossWatchdog, SpeaksOnceInManySteps) {
  std::vector<double> losses(50, 3.0);
  double loss = 3.0;
  for (int i = 0; i < 600; ++i) losses.push_back(loss *= 1.05);
  const std::vector<int64_t> steps = AlarmSteps(losses);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1] - steps[0], kSilenceSteps);
}

TEST(LossWatchdog, ATrendOfLossesThatAreNotFiniteIsOne) {
  std::vector<double> losses(9, NAN);
  EXPECT_THAT(AlarmSteps(losses), IsEmpty());
  losses.push_back(INFINITY);
  EXPECT_THAT(AlarmSteps(losses), ElementsAre(10));
}

TEST(LossWatchdog, ItsStateCarriesOnWhereItStopped) {
  std::vector<double> losses;
  for (int i = 0; i < 120; ++i) losses.push_back(3 + std::sin(i));
  losses.insert(losses.end(), {7.0, 7.1, 7.2});
  for (const size_t cut : {1u, 15u, 60u, 121u, 122u}) {
    LossWatchdog before(1.5), after(1.5);
    for (size_t i = 0; i < cut; ++i) EXPECT_FALSE(before.Observe(static_cast<int64_t>(i) + 1, losses[i]));
    after.set_state(nlohmann::json::parse(before.state().dump()), "state");
    std::optional<std::string> said;
    for (size_t i = cut; i < losses.size(); ++i) {
      EXPECT_FALSE(said);
      said = after.Observe(static_cast<int64_t>(i) + 1, losses[i]);
    }
    EXPECT_TRUE(said) << cut;
  }
  LossWatchdog broken(1.5);
  EXPECT_EQ(test::CodeOf([&] { broken.set_state({{"losses", "many"}}, "state"); }), ErrorCode::kBadInput);
}

TEST(LossWatchdog, OneThatStopsSpeaksAgainInTheNextProcess) {
  LossWatchdog before(1.5);
  for (int64_t step = 1; step <= 100; ++step) EXPECT_FALSE(before.Observe(step, 3.0));
  EXPECT_FALSE(before.Observe(101, 9.0));
  EXPECT_FALSE(before.Observe(102, 9.0));
  ASSERT_TRUE(before.Observe(103, 9.0));
  LossWatchdog warns(1.5), stops(1.5, /*stops=*/true);
  warns.set_state(before.state(), "state");
  stops.set_state(before.state(), "state");
  EXPECT_FALSE(warns.Observe(104, 9.0));
  EXPECT_TRUE(stops.Observe(104, 9.0));
  EXPECT_EQ(stops.bad_in_a_row(), 4);
}

TEST(DataWaitMonitor, SpeaksWhenAWindowWaitsTooLong) {
  DataWaitMonitor monitor;
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 1000; ++step) {
    // The first window waits for a tenth of its time, which is allowed, all others for a fifth.
    const auto said = monitor.Observe(step, 0.5, step <= 50 ? 0.05 : 0.1);
    if (!said) continue;
    steps.push_back(step);
    EXPECT_THAT(*said, HasSubstr("20 %"));
    EXPECT_THAT(*said, HasSubstr("--workers"));
    EXPECT_THAT(*said, HasSubstr("--prefetch"));
  }
  EXPECT_THAT(steps, ElementsAre(100, 600));
}

TEST(DataWaitMonitor, OneLongWaitAmongManyStepsIsNothing) {
  DataWaitMonitor monitor;
  for (int64_t step = 1; step <= 200; ++step) {
    EXPECT_FALSE(monitor.Observe(step, step % 50 == 1 ? 3.0 : 1.0, step % 50 == 1 ? 2.0 : 0.0)) << step;
  }
}

TEST(GpuUseMonitor, SpeaksWhereAGpuIdlesOnTheMeanOfAWindow) {
  GpuUseMonitor monitor;
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 1000; ++step) {
    // In the first window 86 % of the time, which is enough, then 80 %, now and then all of it.
    const double share = step <= 50 ? 0.86 : step % 5 == 0 ? 1.0 : 0.75;
    const auto said = monitor.Observe(step, share);
    if (!said) continue;
    steps.push_back(step);
    EXPECT_THAT(*said, HasSubstr("80 %"));
    EXPECT_THAT(*said, HasSubstr("--batch"));
    EXPECT_THAT(*said, HasSubstr("--workers"));
  }
  EXPECT_THAT(steps, ElementsAre(100, 600));
}

TEST(MemoryMonitor, SpeaksWhenMemoryGrowsAfterTheThirdStep) {
  MemoryMonitor monitor;
  EXPECT_FALSE(monitor.Observe(101, 1, 100 * kMiB));
  EXPECT_FALSE(monitor.Observe(102, 2, 900 * kMiB)) << "the first steps allocate";
  EXPECT_FALSE(monitor.Observe(103, 3, 1000 * kMiB));
  EXPECT_FALSE(monitor.Observe(104, 4, 1250 * kMiB)) << "a quarter is allowed";
  const auto said = monitor.Observe(105, 5, 1251 * kMiB);
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("from 1000.00 MiB at step 103 to 1.22 GiB"));
  EXPECT_FALSE(monitor.Observe(700, 600, 1300 * kMiB)) << "compared with what it told last";
  EXPECT_TRUE(monitor.Observe(701, 601, 1600 * kMiB));
}

TEST(MemoryMonitor, LittleMemoryMayDouble) {
  MemoryMonitor monitor;
  EXPECT_FALSE(monitor.Observe(3, 3, 100 * kMiB));
  EXPECT_FALSE(monitor.Observe(4, 4, 228 * kMiB));
  EXPECT_TRUE(monitor.Observe(5, 5, 229 * kMiB));
}

TEST(MemoryMonitor, WhatTheFirstEvaluationTakesIsNoGrowth) {
  MemoryMonitor monitor;
  EXPECT_FALSE(monitor.Observe(3, 3, 1000 * kMiB));
  monitor.RaiseBaseline(2000 * kMiB);
  EXPECT_FALSE(monitor.Observe(4, 4, 2000 * kMiB));
  monitor.RaiseBaseline(1500 * kMiB);
  EXPECT_FALSE(monitor.Observe(5, 5, 2400 * kMiB));
}

}  // namespace
}  // namespace trainwright
