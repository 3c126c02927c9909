#include "lib/run/rank_records.h"

#include <gtest/gtest.h>

#include "lib/run/html_report.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

TEST(RankRecordsTest, NameTheMachineOfARankWhereThereAreSeveral) {
  EXPECT_EQ(RankRecords{}.NameOf(3), "rank 3") << "not known";
  EXPECT_EQ((RankRecords{.hosts = {"node1", "node1"}}.NameOf(1)), "rank 1");
  const RankRecords two_machines = {.hosts = {"node1", "node2"}};
  EXPECT_EQ(two_machines.NameOf(1), "rank 1 on node2");
  EXPECT_EQ(two_machines.NameOf(7), "rank 7");
}

TEST(RankRecordsTest, TellTheSpanOfMemoryAndWhoTookMost) {
  RankRecords ranks;
  EXPECT_EQ(ranks.DescribeMemory(), "");
  ranks = {.hosts = {"node1", "node2", "node2"}, .max_memory_bytes = {2 << 20, 3 << 20, 1 << 20}};
  EXPECT_EQ(ranks.DescribeMemory(), "peak memory of a rank 1.00 MiB to 3.00 MiB (rank 1 on node2)");
  ranks.max_device_bytes = {1 << 30, 1 << 30, 1 << 30};
  EXPECT_EQ(ranks.DescribeMemory(),
            "peak memory of a rank 1.00 MiB to 3.00 MiB (rank 1 on node2), on its device 1.00 GiB");
}

TEST(RankRecordsTest, ComeBackFromARecord) {
  const RankRecords ranks = {
      .hosts = {"node1", "node2"}, .max_memory_bytes = {5, 7}, .max_device_bytes = {11, 13}};
  ordered_json record = ordered_json::object();
  EncodeRanks(ranks, &record);
  for (const ordered_json& form : {record, ordered_json::parse(record.dump())}) {
    const RankRecords read = DecodeRanks(form);
    EXPECT_EQ(read.hosts, ranks.hosts);
    EXPECT_EQ(read.max_memory_bytes, ranks.max_memory_bytes);
    EXPECT_EQ(read.max_device_bytes, ranks.max_device_bytes);
  }
}

TEST(RankRecordsTest, AddNothingToTheRecordOfOneRank) {
  ordered_json record = ordered_json::object();
  EncodeRanks({}, &record);
  EXPECT_TRUE(record.empty());
}

TEST(RankRecordsTest, ReadNothingFromAnythingElse) {
  for (const ordered_json& record :
       {ordered_json(nullptr), ordered_json(3), ordered_json{{"rank_hosts", "node1"}},
        ordered_json{{"rank_hosts", ordered_json::array({"node1", 3})}},
        ordered_json{{"rank_max_memory_bytes", ordered_json::array({5, -1})}},
        ordered_json{{"rank_max_memory_bytes", ordered_json::array({5, 1.5})}},
        ordered_json{{"rank_max_device_bytes", ordered_json::array({UINT64_MAX})}}}) {
    const RankRecords read = DecodeRanks(record);
    EXPECT_TRUE(read.hosts.empty()) << record;
    EXPECT_TRUE(read.max_memory_bytes.empty()) << record;
    EXPECT_TRUE(read.max_device_bytes.empty()) << record;
  }
}

TEST(RankRecordsTest, AreInThePageAndTheCurvesOfTheRun) {
  RunReport report;
  report.Add({{"type", "run_begin"}, {"time_unix_s", 1000}, {"step", 0}, {"run", "runs/one"}});
  report.Add({{"type", "step"},
              {"time_unix_s", 1001},
              {"step", 1},
              {"tokens", 9},
              {"step_time_s", 1},
              {"slowest_rank", 1},
              {"rank_wait_share", 0.25}});
  EXPECT_EQ(RenderHtmlReport(report, {}).find("Its ranks"), std::string::npos) << "not known before the end";
  ordered_json end = {
      {"type", "run_end"}, {"time_unix_s", 1002}, {"step", 1}, {"exit_status", 0}, {"reason", "complete"}};
  EncodeRanks({.hosts = {"node1", "<b>"}, .max_memory_bytes = {1 << 20, 3 << 20}}, &end);
  report.Add(end);
  const std::string page = RenderHtmlReport(report, {});
  for (const char* line : {"25.0 % waiting for rank 1 on &lt;b&gt;; complete",
                           "peak memory of a rank 1.00 MiB to 3.00 MiB (rank 1 on &lt;b&gt;)",
                           "<tr><td>rank 0</td><td>node1, peak memory 1.00 MiB</td></tr>",
                           "<tr><td>rank 1</td><td>&lt;b&gt;, peak memory 3.00 MiB</td></tr>"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
  report.Add({{"type", "run_begin"}, {"time_unix_s", 1003}, {"step", 1}, {"run", "runs/one"}});
  EXPECT_EQ(RenderHtmlReport(report, {}).find("Its ranks"), std::string::npos)
      << "those of the process before";
}

}  // namespace
}  // namespace trainwright
