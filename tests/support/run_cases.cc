#include "tests/support/run_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace trainwright::test {
namespace {

/// Writes a line a case, at once: "planned NAME" for each before the first runs, then "began NAME" and
/// "passed|failed|skipped NAME". What a process that dies has not done can be read from it.
class CaseLog final : public testing::EmptyTestEventListener {
 public:
  explicit CaseLog(std::FILE* file) : file_(file) {}
  ~CaseLog() override { std::fclose(file_); }
  CaseLog(const CaseLog&) = delete;
  CaseLog& operator=(const CaseLog&) = delete;

 private:
  void OnTestProgramStart(const testing::UnitTest& program) override {
    for (int s = 0; s < program.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *program.GetTestSuite(s);
      for (int c = 0; c < suite.total_test_count(); ++c) {
        if (suite.GetTestInfo(c)->should_run()) Write("planned", *suite.GetTestInfo(c));
      }
    }
  }
  void OnTestStart(const testing::TestInfo& test) override { Write("began", test); }
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    Write(result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed", test);
  }

  void Write(const char* what, const testing::TestInfo& test) {
    std::fprintf(file_, "%s %s.%s\n", what, test.test_suite_name(), test.name());
    std::fflush(file_);
  }

  std::FILE* file_;
};

}  // namespace

int RunCases(int argc, char** argv) {
  // A death test in GoogleTest's "threadsafe" style starts this program again with the same arguments; the
  // log is its parent's.
  const bool is_death_test = std::any_of(argv, argv + argc, [](std::string_view argument) {
    return argument.starts_with("--gtest_internal_run_death_test=");
  });
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kOption = "--case_log=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kOption) && !is_death_test) {
    const std::string path = argv[1] + kOption.size();
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) {
      std::perror(path.c_str());
      return 1;
    }
    testing::UnitTest::GetInstance()->listeners().Append(new CaseLog(file));
  }
  return RUN_ALL_TESTS();
}

}  // namespace trainwright::test
