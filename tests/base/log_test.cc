#include "lib/base/log.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace trainwright {
namespace {

/// What a process prints that finds something of its own, and something that all find alike.
std::string PrintedWhere(bool speaks_for_all) {
  ConfigureLog("tool", LogLevel::kWarning);
  SetLogSpeaker(speaks_for_all);
  testing::internal::CaptureStderr();
  LogWarning("its own");
  LogCommonWarning("common", "a way out");
  LogCommonWarning("without a hint");
  SetLogSpeaker(true);
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, WhatAllProcessesFindAlikeIsSaidByTheOneThatSpeaksForAll) {
  EXPECT_EQ(PrintedWhere(true),
            "tool: warning: its own\ntool: warning: common\ntool: hint: a way out\n"
            "tool: warning: without a hint\n");
  EXPECT_EQ(PrintedWhere(false), "tool: warning: its own\n");
}

/// What is printed, of a tool of that name.
std::string PrintedBy(const std::function<void()>& say, LogLevel level = LogLevel::kInfo) {
  ConfigureLog("tool", level);
  testing::internal::CaptureStderr();
  say();
  return testing::internal::GetCapturedStderr();
}

TEST(HoldInfoTest, AnErrorStandsAlone) {
  EXPECT_EQ(PrintedBy([] {
              HoldInfo("the device");
              LogError("no data");
              LogHint("name some");
              ReleaseHeldInfo();
            }),
            "tool: error: no data\ntool: hint: name some\n");
}

TEST(HoldInfoTest, AnyOtherMessageComesAfterWhatIsHeld) {
  EXPECT_EQ(PrintedBy([] {
              HoldInfo("first");
              HoldInfo("second");
              LogWarning("third");
              LogInfo("fourth");
            }),
            "tool: first\ntool: second\ntool: warning: third\ntool: fourth\n");
}

TEST(HoldInfoTest, WhatIsReleasedIsPrintedOnce) {
  EXPECT_EQ(PrintedBy([] { HoldInfo("held"); }), "");
  EXPECT_EQ(PrintedBy([] { ReleaseHeldInfo(); }), "tool: held\n");
  EXPECT_EQ(PrintedBy([] { ReleaseHeldInfo(); }), "");
}

TEST(HoldInfoTest, AQuietToolPrintsNothingOfIt) {
  const auto say = [] {
    HoldInfo("held");
    LogDebug("unseen");
    LogWarning("seen");
  };
  EXPECT_EQ(PrintedBy(say, LogLevel::kWarning), "tool: warning: seen\n");
  EXPECT_EQ(PrintedBy([] {
              HoldInfo("held");
              LogDebug("not printed, and so no other message");
              LogError("no data");
            }),
            "tool: error: no data\n");
}

}  // namespace
}  // namespace trainwright
