#include "lib/memory/fitting_step.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace trainwright {
namespace {

TEST(FittingStepTest, TheBatchIsHalvedUntilItFits) {
  const auto fits = [](int64_t batch, int64_t memory_bytes) {
    return HalveToFit(batch, memory_bytes, [](int64_t samples) { return 100 + 10 * samples; });
  };
  EXPECT_EQ(fits(16, 260), 16);
  EXPECT_EQ(fits(16, 259), 8);
  EXPECT_EQ(fits(13, 140), 3);
  EXPECT_EQ(fits(16, 110), 1);
  EXPECT_EQ(fits(16, 109), 0);
}

TEST(FittingStepTest, AStepHasTheFewestAndSmallestMicroBatchesThatHoldItsSamples) {
  for (int64_t samples = 1; samples <= 40; ++samples) {
    for (int64_t most = 1; most <= samples; ++most) {
      int64_t accum = 1, batch = 1;
      while (accum * most < samples) ++accum;
      while (accum * batch < samples) ++batch;
      const DividedStep step = DivideStep(samples, most);
      EXPECT_EQ(step.accum, accum) << samples << " by " << most;
      EXPECT_EQ(step.batch, batch) << samples << " by " << most;
    }
  }
}

}  // namespace
}  // namespace trainwright
