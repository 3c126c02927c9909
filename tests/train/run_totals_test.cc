#include "lib/train/run_totals.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainwright {
namespace {

TEST(RunTotalsTest, ALossThatIsNoNumberIsNeitherTheFirstNorTheLastNorTheBest) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  RunTotals totals(0, 0);
  StepReport report;
  for (const double loss_nats : {none, 3.0, 2.0, none, 2.5, none}) {
    ++report.step;
    report.loss_nats = loss_nats;
    totals.AddStep(report, 0);
  }
  EXPECT_EQ(totals.loss_nats().first, 3.0);
  EXPECT_EQ(totals.loss_nats().last, 2.5);
  EXPECT_EQ(totals.loss_nats().best, 2.0);
}

}  // namespace
}  // namespace trainwright
