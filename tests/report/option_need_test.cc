#include "lib/report/option_need.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::MessageOf;

std::vector<OptionValue> Given(const std::string& key, OptionOrigin origin) {
  return {{.key = "json", .origin = OptionOrigin::kCommandLine}, {.key = key, .origin = origin}};
}

TEST(RefuseWithoutTest, AnOptionOfTheCommandLineIsRefusedWithTheNameOfTheOneThatItNeeds) {
  EXPECT_EQ(MessageOf([] {
              RefuseWithout("--watch", {"interval", "pid"}, Given("pid", OptionOrigin::kCommandLine));
            }),
            "--pid: has a meaning only with --watch | ");
}

TEST(RefuseWithoutTest, WhatTheEnvironmentOrAFileSaysMayBeMeantForOtherCalls) {
  for (const OptionOrigin origin :
       {OptionOrigin::kDefault, OptionOrigin::kConfigFile, OptionOrigin::kEnvironment}) {
    EXPECT_NO_THROW(RefuseWithout("--watch", {"interval"}, Given("interval", origin)));
  }
}

TEST(RefuseWithoutTest, OtherOptionsOfTheCommandLineStay) {
  EXPECT_NO_THROW(RefuseWithout("--watch", {"interval"}, Given("seq", OptionOrigin::kCommandLine)));
}

}  // namespace
}  // namespace trainwright
