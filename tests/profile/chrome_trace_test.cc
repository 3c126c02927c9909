#include "lib/profile/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/profile/sample_timeline.h"

namespace trainwright {
namespace {

nlohmann::json Trace(const HostTimeline& timeline, const std::vector<DeviceActivity>& activities) {
  MemorySink sink;
  WriteChromeTrace(timeline, activities, &sink);
  return nlohmann::json::parse(sink.bytes());
}

std::vector<nlohmann::json> EventsOf(const nlohmann::json& trace, int process) {
  std::vector<nlohmann::json> events;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == process) events.push_back(event);
  }
  return events;
}

TEST(ChromeTraceTest, HasCompleteEventsInMicrosecondsFromTheFirst) {
  const auto events = EventsOf(Trace(test::SampleTimeline(), {}), 1);
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[0]["name"], "step");
  EXPECT_EQ(events[0]["ts"], 0);
  EXPECT_EQ(events[0]["dur"], 1);
  EXPECT_EQ(events[0]["args"]["step"], 3);
  EXPECT_EQ(events[2]["name"], "matmul");
  EXPECT_EQ(events[2]["cat"], "gemm");
  EXPECT_DOUBLE_EQ(events[2]["ts"].get<double>(), 0.19);
  EXPECT_DOUBLE_EQ(events[2]["dur"].get<double>(), 0.6);
  EXPECT_EQ(events[2]["args"]["operations"], 3000);
  EXPECT_DOUBLE_EQ(events[4]["ts"].get<double>(), 1.1);
}

TEST(ChromeTraceTest, NamesProcessesAndThreadsOfHostAndDevice) {
  std::map<std::pair<int, int>, std::string> names;
  const nlohmann::json trace = Trace(test::SampleTimeline(), test::SampleActivities());
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") names[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  EXPECT_EQ(names.at({1, 0}), "host");
  EXPECT_EQ(names.at({1, 1}), "training thread");
  EXPECT_EQ(names.at({1001, 0}), "GPU 0");
  EXPECT_EQ(names.at({1001, 7}), "stream 7");
  EXPECT_EQ(names.at({1001, 13}), "stream 13");
}

TEST(ChromeTraceTest, PutsTheDeviceOnTheClockOfTheHostAndLeavesOutWhatIsOutside) {
  std::vector<DeviceActivity> activities = test::SampleActivities();
  SortActivities(&activities);
  const auto events = EventsOf(Trace(test::SampleTimeline(), activities), 1001);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["tid"], 7);
  EXPECT_DOUBLE_EQ(events[0]["ts"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(events[1]["ts"].get<double>(), 1.2);
  EXPECT_EQ(events[2]["name"], "memcpy HtoD");
  EXPECT_EQ(events[2]["args"]["bytes"], 64);
}

TEST(ChromeTraceTest, NamesOfAnyBytesAreValidJson) {
  const std::vector<DeviceActivity> activities = {
      {.name = "operator\"\\\n<\xff>", .start_ns = 10'200, .end_ns = 10'300}};
  EXPECT_EQ(EventsOf(Trace(test::SampleTimeline(), activities), 1001).size(), 1u);
}

TEST(ChromeTraceTest, OfNoStepsIsEmptyAndValid) {
  EXPECT_TRUE(EventsOf(Trace(HostTimeline(), {}), 1).empty());
}

}  // namespace
}  // namespace trainwright
