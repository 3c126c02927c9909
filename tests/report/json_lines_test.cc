#include "lib/report/json_lines.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::string path_ = folder_.path("metrics.jsonl");
};

TEST_F(JsonLinesTest, KeepsTheOrderOfKeysOneObjectALine) {
  JsonLinesWriter writer(path_);
  writer.Write({{"type", "step"}, {"step", 1}, {"a", "x\ny"}});
  writer.Write({{"type", "run_end"}});
  EXPECT_EQ(test::ReadFile(path_),
            "{\"type\":\"step\",\"step\":1,\"a\":\"x\\ny\"}\n{\"type\":\"run_end\"}\n");
}

TEST_F(JsonLinesTest, DoublesReadBackToTheSameBits) {
  const Rng rng(test::TestSeed(), "json_lines");
  std::vector<double> values = {
      0.1, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -0.0, 1e22, 123456789012345678.0};
  for (uint64_t i = 0; values.size() < 2000; ++i) {
    const double value = std::bit_cast<double>(rng.Bits(i));
    if (std::isfinite(value)) values.push_back(value);
  }
  JsonLinesWriter writer(path_);
  writer.Write({{"values", values}});
  // strtod is the independent reader.
  const std::string text = test::ReadFile(path_);
  const char* at = text.c_str() + text.find('[') + 1;
  for (const double value : values) {
    char* end = nullptr;
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(at, &end)), std::bit_cast<uint64_t>(value));
    at = end + 1;
  }
}

TEST_F(JsonLinesTest, WhatIsNotFiniteIsNullAndWhatIsNotUtf8IsReplaced) {
  JsonLinesWriter writer(path_);
  writer.Write({{"a", NAN}, {"b", INFINITY}, {"c", "\xff"}});
  EXPECT_EQ(test::ReadFile(path_), "{\"a\":null,\"b\":null,\"c\":\"\xef\xbf\xbd\"}\n");
}

TEST_F(JsonLinesTest, AppendsAndCutsOffATornLastLine) {
  for (const size_t tail : {size_t{1}, size_t{5000}, size_t{20000}}) {
    const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
    test::WriteFile(path_, whole + std::string(tail, 'x'));
    JsonLinesWriter writer(path_);
    EXPECT_EQ(writer.repaired_bytes(), tail);
    writer.Write({{"step", 3}});
    writer.Sync();
    EXPECT_EQ(test::ReadFile(path_), whole + "{\"step\":3}\n");
  }
  test::WriteFile(path_, "torn from the start");
  JsonLinesWriter(path_).Write({{"step", 1}});
  EXPECT_EQ(test::ReadFile(path_), "{\"step\":1}\n");
}

TEST_F(JsonLinesTest, LinesOfManyThreadsStayWhole) {
  {
    JsonLinesWriter writer(path_);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) writer.Write({{"text", std::string(300, 'a')}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::string line = "{\"text\":\"" + std::string(300, 'a') + "\"}\n";
  const std::string text = test::ReadFile(path_);
  ASSERT_EQ(text.size(), 800 * line.size());
  for (size_t at = 0; at < text.size(); at += line.size()) ASSERT_EQ(text.compare(at, line.size(), line), 0);
}

TEST_F(JsonLinesTest, AFullDiskLeavesNoPartOfALineBetweenOthers) {
  JsonLinesWriter writer(path_);
  writer.Write({{"step", 1}});
  const std::string whole = test::ReadFile(path_);
  // A limit on the size of files cuts a write short where a full disk would.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {.rlim_cur = whole.size() + 5, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto code = test::CodeOf([&] { writer.Write({{"step", 2}}); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code, ErrorCode::kIo);
  writer.Write({{"type", "run_end"}});
  EXPECT_EQ(test::ReadFile(path_), whole + "{\"type\":\"run_end\"}\n");
}

TEST_F(JsonLinesTest, FailuresAreIoErrors) {
  EXPECT_EQ(test::CodeOf([&] { JsonLinesWriter writer(folder_.path("none/metrics.jsonl")); }),
            ErrorCode::kIo);
  EXPECT_EQ(test::CodeOf([&] { JsonLinesWriter("/dev/full").Write({{"a", 1}}); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright
