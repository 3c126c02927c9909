#include <gtest/gtest.h>

#include "lib/train/compute_choice.h"

namespace trainwright {
namespace {

TEST(LogEveryTest, IsOneOnACpuAndTenOnAGpuUnlessTheUserSays) {
  TrainSettings settings;
  EXPECT_EQ(LogEvery(settings, at::Device(at::kCPU)), 1);
  EXPECT_EQ(LogEvery(settings, at::Device(at::kCUDA, 0)), 10);
  settings.log_every = 3;
  EXPECT_EQ(LogEvery(settings, at::Device(at::kCPU)), 3);
  EXPECT_EQ(LogEvery(settings, at::Device(at::kCUDA, 0)), 3);
}

}  // namespace
}  // namespace trainwright
