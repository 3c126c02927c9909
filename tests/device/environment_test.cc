// A program that links lib/device is not started again, with another environment, before its main.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lib/device/determinism.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr char kChild[] = "TRAINWRIGHT_TEST_CHILD";

TEST(Environment, IsThatOfTheParentWhenMainBegins) {
  if (std::getenv(kChild) != nullptr) {
    ASSERT_GE(UsablePhysicalCores(), 1);  // links the library's file
    const std::string variables = test::ReadFile("/proc/self/environ");
    EXPECT_EQ(std::count(variables.begin(), variables.end(), '\0'), 1) << variables;
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const test::ProcessResult child =
      test::RunShell(std::string("env -i ") + kChild + "=1 '" + self +
                     "' --gtest_filter='Environment.IsThatOfTheParentWhenMainBegins'");
  EXPECT_EQ(child.exit_status, 0) << child.standard_output << child.standard_error;
}

TEST(Environment, SaysWhereFixturesAreThatWereCarriedToAnotherMachine) {
  EXPECT_TRUE(std::filesystem::exists(test::Fixture("nn/fixtures")));
  setenv("TRAINWRIGHT_TEST_FIXTURES", "/carried", 1);
  EXPECT_EQ(test::Fixture("nn/fixtures"), "/carried/nn/fixtures");
  unsetenv("TRAINWRIGHT_TEST_FIXTURES");
}

}  // namespace
}  // namespace trainwright
