#include "lib/launch/rank_gpu.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(RankGpuTest, EachRankOfAMachineSeesAnotherGpu) {
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 4, 0), "0");
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 4, 3), "3");
  EXPECT_EQ(VisibleGpuOfRank("6,2,GPU-8932f937", 8, 1), "2");
  EXPECT_EQ(VisibleGpuOfRank("6,2,GPU-8932f937", 8, 2), "GPU-8932f937");
}

TEST(RankGpuTest, MoreRanksThanGpusShareThem) {
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 2, 2), "0");
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 2, 3), "1");
}

TEST(RankGpuTest, WhatALauncherChoseStays) {
  EXPECT_EQ(VisibleGpuOfRank("5", 8, 1), std::nullopt);
  EXPECT_EQ(VisibleGpuOfRank("", 8, 1), std::nullopt);
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 1, 1), std::nullopt);
  EXPECT_EQ(VisibleGpuOfRank(std::nullopt, 0, 0), std::nullopt);
}

}  // namespace
}  // namespace trainwright
