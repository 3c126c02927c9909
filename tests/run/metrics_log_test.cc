#include "lib/run/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::TemporaryFolder;

std::vector<nlohmann::json> ReadLines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream content(test::ReadFile(path));
  for (std::string line; std::getline(content, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(MetricsLog, WritesOneObjectALineWithSchemaTypeAndTime) {
  const TemporaryFolder folder;
  MetricsLog(folder.path("m")).Write("step", {{"step", 1}, {"loss_nats", 0.1}});
  MetricsLog(folder.path("m")).Write("step", {{"step", 2}, {"loss_nats", NAN}});
  const auto lines = ReadLines(folder.path("m"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("schema"), "trainwright.train/1");
  EXPECT_EQ(lines[0].at("type"), "step");
  EXPECT_GT(lines[0].at("time_unix_s").get<double>(), 1.7e9);
  EXPECT_EQ(lines[0].at("loss_nats").get<double>(), 0.1) << "doubles read back to the same value";
  EXPECT_TRUE(lines[1].at("loss_nats").is_null());
}

TEST(CutMetrics, LeavesTheRecordsUpToTheCheckpoint) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  {
    MetricsLog log(path);
    log.Write("run_begin", {{"step", 0}});
    for (int step = 1; step <= 5; ++step) {
      log.Write("step", {{"step", step}});
      if (step == 3) log.Write("checkpoint", {{"step", step}});
    }
    log.Write("run_end", {{"step", 3}});
  }
  CutMetrics(path, 3);
  std::string types;
  for (const auto& line : ReadLines(path)) types += line.at("type").get<std::string>() + " ";
  EXPECT_EQ(types, "run_begin step step step checkpoint ");
}

TEST(CutMetrics, LeavesOutTheLastEvaluationWhereTheCheckpointHasNone) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  {
    MetricsLog log(path);
    for (const int step : {2, 4}) {
      log.Write("step", {{"step", step}});
      log.Write("eval", {{"step", step}});
    }
  }
  CutMetrics(path, 4, /*evaluated=*/true);
  EXPECT_EQ(ReadLines(path).size(), 4u);
  CutMetrics(path, 4, /*evaluated=*/false);
  std::string records;
  for (const auto& line : ReadLines(path)) {
    records += line.at("type").get<std::string>() + line.at("step").dump() + " ";
  }
  EXPECT_EQ(records, "step2 eval2 step4 ");
}

TEST(CutMetrics, DropsALastLineTornByACrash) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  const std::string whole = R"({"schema":"trainwright.train/1","type":"step","step":1})"
                            "\n";
  test::WriteFile(path, whole + R"({"schema":"trainwright.tr)");
  CutMetrics(path, 9);
  EXPECT_EQ(test::ReadFile(path), whole);
}

TEST(CutMetrics, RefusesAFileThatIsNotMetrics) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("m"), "my notes\n");
  EXPECT_EQ(test::CodeOf([&] { CutMetrics(folder.path("m"), 1); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::ReadFile(folder.path("m")), "my notes\n");
}

TEST(CutMetrics, LeavesAMissingFileMissing) {
  const TemporaryFolder folder;
  CutMetrics(folder.path("m"), 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path("m")));
}

}  // namespace
}  // namespace trainwright
