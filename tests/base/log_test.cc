#include "lib/base/log.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace trainwright
