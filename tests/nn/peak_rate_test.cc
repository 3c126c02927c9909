#include "lib/nn/peak_rate.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(PublishedPeakRate, IsTheDenseRateOfThePrecision) {
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kBf16)->tflops, 989.5);
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kFp16)->tflops, 989.5);
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kFp32)->tflops, 67);
  EXPECT_EQ(PublishedPeakRate("NVIDIA A100-SXM4-80GB", Precision::kBf16)->tflops, 312);
}

TEST(PublishedPeakRate, IsNotGuessedForOtherNames) {
  for (const char* name :
       {"", "NVIDIA H200 NVL", "NVIDIA H100", "NVIDIA GeForce RTX 4090 D", "Graphics Device"}) {
    EXPECT_FALSE(PublishedPeakRate(name, Precision::kBf16).has_value()) << name;
  }
  EXPECT_EQ(GpuName(at::Device(at::kCPU)), "");
}

}  // namespace
}  // namespace trainwright
