#include "lib/run/upkeep_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/run/metrics_log.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::Pair;

class UpkeepRecordsTest : public testing::Test {
 protected:
  void Write(double time_s, const std::string& type, ordered_json fields) {
    fields["time_unix_s"] = time_s;
    MetricsLog(path()).Write(type, fields);
  }
  std::string path() const { return folder_.path("metrics.jsonl"); }
  test::TemporaryFolder folder_;
};

TEST_F(UpkeepRecordsTest, TellWhatTheNewestProcessSpentAndWhatAllOfThemRecorded) {
  Write(10, "run_begin", {{"step", 0}, {"cost_per_hour", nullptr}});
  Write(11, "step", {{"step", 1}, {"max_memory_bytes", 900}, {"source_tokens", {5, 5}}});
  Write(12, "checkpoint", {{"step", 1}, {"stall_s", 4.0}, {"wait_s", 1.0}, {"writer_cpu_s", 2.0}});
  Write(13, "copy", {{"step", 1}, {"place", "a/step-1"}, {"copied", true}});
  Write(1000, "run_begin", {{"step", 1}, {"cost_per_hour", 36.0}});
  Write(1001, "step", {{"step", 2}, {"max_memory_bytes", 700}, {"source_tokens", {3, 4}}});
  Write(1002, "step", {{"step", 3}, {"max_memory_bytes", 800}, {"source_tokens", {1, 2}}});
  Write(1003, "checkpoint", {{"step", 2}, {"stall_s", 0.5}, {"wait_s", 0.25}, {"writer_cpu_s", 0.125}});
  Write(1004, "checkpoint",
        {{"step", 3}, {"stall_s", nullptr}, {"wait_s", nullptr}, {"writer_cpu_s", nullptr}});
  Write(1010, "copy", {{"step", 2}, {"place", "b"}, {"copied", false}});
  const UpkeepRecords records = ReadUpkeepRecords(path());
  EXPECT_TRUE(records.begun);
  EXPECT_THAT(records.checkpoints, ElementsAre(1, 2, 3));
  EXPECT_THAT(records.copies, ElementsAre(Pair(1, "a/step-1")));
  EXPECT_TRUE(records.end.is_null());
  EXPECT_FALSE(records.EndedWell("complete"));
  const ordered_json end = records.EndFields(3, 99, 0, "complete");
  EXPECT_EQ(end, (ordered_json{{"step", 3},
                               {"exit_status", 0},
                               {"reason", "complete"},
                               {"tokens_seen", 99},
                               {"wall_time_s", 10.0},
                               {"save_stall_s", 0.5},
                               {"save_wait_s", 0.25},
                               {"writer_cpu_s", 0.125},
                               {"cost", 0.1},
                               {"max_memory_bytes", 800},
                               {"source_tokens", {4, 6}}}));
}

TEST_F(UpkeepRecordsTest, KeepWhatTheEndTellsUnderAnotherStatus) {
  Write(10, "run_begin", {{"step", 0}});
  Write(20, "run_end",
        {{"step", 3}, {"exit_status", 4}, {"reason", "complete, but"}, {"max_memory_bytes", 5}});
  const UpkeepRecords records = ReadUpkeepRecords(path());
  EXPECT_FALSE(records.EndedWell("complete"));
  const ordered_json end = records.EndFields(3, 99, 0, "complete");
  EXPECT_EQ(end.at("exit_status"), 0);
  EXPECT_EQ(end.at("reason"), "complete");
  EXPECT_EQ(end.at("max_memory_bytes"), 5);
  EXPECT_FALSE(end.contains("time_unix_s")) << "it is written now";
}

TEST_F(UpkeepRecordsTest, AreNoneWithoutAFile) {
  EXPECT_FALSE(ReadUpkeepRecords(path()).begun);
}

TEST_F(UpkeepRecordsTest, AnEndThatAnotherRecordFollowsIsNone) {
  Write(10, "run_begin", {{"step", 0}});
  Write(20, "run_end", {{"step", 3}, {"exit_status", 0}, {"reason", "complete"}});
  EXPECT_TRUE(ReadUpkeepRecords(path()).EndedWell("complete"));
  Write(30, "run_begin", {{"step", 3}});
  EXPECT_FALSE(ReadUpkeepRecords(path()).EndedWell("complete"));
}

}  // namespace
}  // namespace trainwright
