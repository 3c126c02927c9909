#include "lib/bench/time_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainwright {
namespace {

/// Two rounds of a variant and its control, each of two runs.
Measurement MadeOf(const Sample& run) {
  Measurement measurement;
  measurement.rounds.assign(2, Round{std::vector<std::vector<Sample>>(2, std::vector<Sample>(2, run))});
  return measurement;
}

TEST(TimeSharesTest, AShareIsTheSumOfAFieldOverTheTimeOfItsRun) {
  EXPECT_EQ(ReportedFor("share:eval_time_s"), "sum:eval_time_s");
  Measurement measurement = MadeOf({{"wall_s", 8}, {"sum:eval_time_s", 2}});
  measurement.rounds[1].runs[0][1]["wall_s"] = 4;
  AddShare("share:eval_time_s", &measurement);
  EXPECT_EQ(measurement.rounds[0].runs[1][0].at("share:eval_time_s"), 0.25);
  EXPECT_EQ(measurement.rounds[1].runs[0][1].at("share:eval_time_s"), 0.5);
}

TEST(TimeSharesTest, ARunThatReportsNoneHasNoShare) {
  Measurement measurement = MadeOf({{"wall_s", 8}});
  AddShare("share:cleanup_s", &measurement);
  EXPECT_FALSE(measurement.rounds[0].runs[0][0].contains("share:cleanup_s"));
}

TEST(TimeSharesTest, OtherMetricsAreReportedAsTheyAre) {
  EXPECT_EQ(ReportedFor("mean:stall_s"), "mean:stall_s");
  Measurement measurement = MadeOf({{"wall_s", 8}, {"mean:stall_s", 1}});
  AddShare("mean:stall_s", &measurement);
  EXPECT_EQ(measurement.rounds[0].runs[0][0].size(), 2u);
}

TEST(ReadMetricTest, TheSumIsOfAllRecordsThoseSkippedToo) {
  const std::string text = "{\"a\": 1}\n{\"b\": 9}\n{\"a\": 2}\n{\"a\": 4.5}\n";
  EXPECT_EQ(ReadMetric(text, "sum:a", 2, "run"), 7.5);
  EXPECT_EQ(FieldOfMetric("sum:a"), "a");
  EXPECT_EQ(FindMetric(text, "sum:c", 0), std::nullopt);
}

}  // namespace
}  // namespace trainwright
