#include "lib/run/loader_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMuchData = uint64_t{1} << 30, kTinyData = 5000;

/// Why an option is as it is; empty: nobody says it.
std::string ReasonOf(const PlannedLoader& planned, const std::string& option) {
  const auto found = std::find_if(planned.reasons.begin(), planned.reasons.end(),
                                  [&](const ChoiceReason& reason) { return reason.option == option; });
  return found == planned.reasons.end() ? "" : found->line();
}

TEST(PlanLoaderTest, WorkersFollowDeviceCoresAndSizeOfTheData) {
  const auto workers = [](bool gpu, int cores, uint64_t tokens) {
    return PlanLoader({}, gpu, cores, tokens).options.workers;
  };
  EXPECT_EQ(workers(true, 16, kMuchData), 4);
  EXPECT_EQ(workers(true, 4, kMuchData), 2);
  EXPECT_EQ(workers(true, 1, kMuchData), 1);
  EXPECT_EQ(workers(false, 16, kMuchData), 1);
  EXPECT_EQ(workers(true, 16, kTinyData), 0);
  EXPECT_EQ(workers(false, 16, kTinyData), 0);
}

TEST(PlanLoaderTest, WhatIsChosenIsToldAndWhatIsAskedForIsNot) {
  EXPECT_THAT(ReasonOf(PlanLoader({}, true, 16, kMuchData), "workers"), HasSubstr("16 cores"));
  EXPECT_THAT(ReasonOf(PlanLoader({}, true, 16, kTinyData), "workers"), HasSubstr("5000 tokens of data"));
  TrainSettings asked;
  asked.workers = "3";
  const PlannedLoader planned = PlanLoader(asked, true, 2, kTinyData);
  EXPECT_EQ(planned.options.workers, 3);
  EXPECT_EQ(ReasonOf(planned, "workers"), "");
}

TEST(PlanLoaderTest, MemoryIsPinnedWhereAGpuReadsIt) {
  TrainSettings asked;
  asked.pin = "on";
  EXPECT_TRUE(PlanLoader(asked, true, 4, kMuchData).pin);
  EXPECT_FALSE(PlanLoader(asked, false, 4, kMuchData).pin);
  EXPECT_THAT(ReasonOf(PlanLoader(asked, false, 4, kMuchData), "pin"), HasSubstr("no effect"));
  asked.pin = "off";
  EXPECT_FALSE(PlanLoader(asked, true, 4, kMuchData).pin);
  EXPECT_TRUE(PlanLoader({}, true, 4, kMuchData).pin);
}

TEST(PlanLoaderTest, EachWorkerKeepsTwoWindowsAheadOfAGpuAndOneOfACpu) {
  EXPECT_EQ(PlanLoader({}, true, 4, kMuchData).options.prefetch, 2);
  EXPECT_EQ(PlanLoader({}, false, 4, kMuchData).options.prefetch, 1);
}

TEST(PlanLoaderTest, NumbersOutOfRangeAreRefused) {
  for (const char* workers : {"-1", "257", "many", "1.5", ""}) {
    TrainSettings asked;
    asked.workers = workers;
    EXPECT_EQ(test::CodeOf([&] { PlanLoader(asked, false, 4, kMuchData); }), ErrorCode::kUsage) << workers;
  }
  TrainSettings asked;
  asked.prefetch = 0;
  EXPECT_EQ(test::CodeOf([&] { PlanLoader(asked, false, 4, kMuchData); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright
