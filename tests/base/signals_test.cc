#include "lib/base/signals.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <csignal>

namespace trainwright {
namespace {

using testing::ExitedWithCode;

/// Ends the process with the signal that asked to stop.
void RaiseBoth(int first, double pause_s, int second) {
  InstallSignalHandlers(/*ignore_sigpipe=*/false);
  raise(first);
  const auto whole_s = static_cast<time_t>(pause_s);
  const timespec pause = {.tv_sec = whole_s,
                          .tv_nsec = static_cast<long>(1e9 * (pause_s - static_cast<double>(whole_s)))};
  nanosleep(&pause, nullptr);
  raise(second);
  _exit(StopSignal());
}

/// timeout(1) signals its process and its group; a launcher passes on what the terminal has sent to all.
TEST(StopSignalDeathTest, ACopyOfASignalAsksForNoMoreThanTheFirst) {
  EXPECT_EXIT(RaiseBoth(SIGINT, 0, SIGINT), ExitedWithCode(SIGINT), "");
  EXPECT_EXIT(RaiseBoth(SIGTERM, 0, SIGINT), ExitedWithCode(SIGINT), "");
  EXPECT_EXIT(RaiseBoth(SIGINT, 0, SIGTERM), ExitedWithCode(SIGTERM), "");
}

TEST(StopSignalDeathTest, ALaterSigintEndsTheProcessAtOnce) {
  constexpr double kLater_s = 1.2;
  EXPECT_EXIT(RaiseBoth(SIGINT, kLater_s, SIGINT), ExitedWithCode(128 + SIGINT), "");
  EXPECT_EXIT(RaiseBoth(SIGTERM, kLater_s, SIGINT), ExitedWithCode(128 + SIGINT), "");
  EXPECT_EXIT(RaiseBoth(SIGINT, kLater_s, SIGTERM), ExitedWithCode(SIGTERM), "");
}

}  // namespace
}  // namespace trainwright
