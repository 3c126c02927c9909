#include "lib/run/training_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lib/run/html_report.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SmoothingWindow, IsATwentiethOfTheValuesBetweenFiveAndFifty) {
  EXPECT_EQ(SmoothingWindow(0), 5u);
  EXPECT_EQ(SmoothingWindow(119), 5u);
  EXPECT_EQ(SmoothingWindow(120), 6u);
  EXPECT_EQ(SmoothingWindow(1000), 50u);
  EXPECT_EQ(SmoothingWindow(1000000), 50u);
}

TEST(MovingAverage, IsTheMeanOfWhatIsThereAndLeavesOutWhatIsNoNumber) {
  const std::vector<double> values = {1, 3, NAN, 5, 9};
  EXPECT_THAT(MovingAverage(values, 3),
              ElementsAre(DoubleEq(1), DoubleEq(2), DoubleEq(2), DoubleEq(4), DoubleEq(7)));
  EXPECT_TRUE(std::isnan(MovingAverage(std::vector<double>{NAN}, 5)[0]));
  EXPECT_TRUE(MovingAverage({}, 5).empty());
}

std::string Record(const std::string& type, int step, const std::string& fields) {
  return R"({"schema":"trainwright.train/1","type":")" + type + R"(","time_unix_s":)" +
         std::to_string(1000 + 1800 * step) + R"(,"step":)" + std::to_string(step) + fields + "}\n";
}

TEST(WriteRunReports, MakesArraysAndAPageThatNeedsNothingElse) {
  const test::TemporaryFolder folder;
  std::string lines = Record(
      "run_begin", 0, R"(,"run":"/home/someone/runs/a<b","cost_per_hour":3,"device":"cpu","parameters":12)");
  lines += Record("eval", 0, R"(,"loss_nats":6.5)");
  lines += Record("step", 1, R"(,"loss_nats":5,"lr":0.1,"epoch":0.25,"cpu_cores":1.5)");
  lines += Record("warning", 1, R"(,"message":"<script>alert(1)</script>")");
  lines += Record("step", 2, R"(,"loss_nats":null,"lr":0.2,"epoch":0.5,"cpu_cores":1.75)");
  lines += Record("eval", 2, R"(,"loss_nats":4.5)");
  test::WriteFile(folder.path("metrics.jsonl"), lines + R"({"torn)");
  EXPECT_EQ(WriteRunReports(folder.path()), folder.path("report.html"));

  EXPECT_EQ(
      nlohmann::json::parse(test::ReadFile(folder.path("training_metrics.json"))),
      nlohmann::json::parse(R"({"loss":[5,null],"learning_rate":[0.1,0.2],"epoch":[0.25,0.5],"step":[1,2],
                                      "eval_loss":[6.5,4.5],"eval_steps":[0,2]})"));
  const std::string page = test::ReadFile(folder.path("report.html"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("Processor"));
  EXPECT_THAT(page, HasSubstr("<td>cost</td><td>3.00</td>")) << "an hour";
  for (const char* foreign : {"<script", "src=", "href=", "@import", "url(", "/home/someone"}) {
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  }
}

}  // namespace
}  // namespace trainwright
