#include "lib/report/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "lib/base/log.h"
#include "lib/report/progress_line.h"

namespace trainwright {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs `action` with standard error on a pipe or a pseudo-terminal, and returns what arrived there.
std::string StandardErrorOf(bool terminal, const std::function<void()>& action, unsigned short columns = 80) {
  int reader = -1, writer = -1;
  if (terminal) {
    const winsize size = {.ws_row = 24, .ws_col = columns};
    EXPECT_EQ(openpty(&reader, &writer, nullptr, nullptr, &size), 0);
  } else {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    reader = ends[0], writer = ends[1];
  }
  std::string received;
  std::thread collector([&] {
    char buffer[4096];
    for (ssize_t count; (count = read(reader, buffer, sizeof(buffer))) > 0;) received.append(buffer, count);
  });
  const int saved = dup(STDERR_FILENO);
  dup2(writer, STDERR_FILENO);
  close(writer);
  action();
  dup2(saved, STDERR_FILENO);
  close(saved);
  collector.join();
  close(reader);
  return received;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() {
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    ConfigureLog("tool", LogLevel::kInfo);
  }
};

void DrawOnce(ProgressMode mode) {
  Progress progress(mode, "pack", 100, "tokens");
  progress.Update(42, "note");
}

TEST_F(ProgressTest, DrawsNothingOnAPipe) {
  EXPECT_EQ(StandardErrorOf(false, [] { DrawOnce(ProgressMode::kAuto); }), "");
}

TEST_F(ProgressTest, DrawsABarOnATerminalAndClearsItAtTheEnd) {
  const std::string drawn = StandardErrorOf(true, [] { DrawOnce(ProgressMode::kAuto); });
  EXPECT_THAT(drawn,
              StartsWith("\r\x1b[Kpack  42 % [############..................]  42 of 100 tokens  note"));
  EXPECT_THAT(drawn, EndsWith("\r\x1b[K"));
}

TEST_F(ProgressTest, RespectsModeDumbTerminalsQuietAndNoColor) {
  EXPECT_EQ(StandardErrorOf(true, [] { DrawOnce(ProgressMode::kNever); }), "");
  EXPECT_THAT(StandardErrorOf(false, [] { DrawOnce(ProgressMode::kAlways); }), HasSubstr("42 of 100"));
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(StandardErrorOf(true, [] { DrawOnce(ProgressMode::kAuto); }), "");
  unsetenv("TERM");
  EXPECT_EQ(StandardErrorOf(true, [] { DrawOnce(ProgressMode::kAuto); }), "");
  setenv("TERM", "xterm", 1);
  ConfigureLog("tool", LogLevel::kError);
  EXPECT_EQ(StandardErrorOf(true, [] { DrawOnce(ProgressMode::kAuto); }), "");
  ConfigureLog("tool", LogLevel::kInfo);
  setenv("NO_COLOR", "", 1);
  EXPECT_THAT(StandardErrorOf(true, [] { DrawOnce(ProgressMode::kAuto); }), HasSubstr("\x1b[36m"));
}

TEST_F(ProgressTest, IsClearedBeforeALogLineAndDrawnAgainBehindIt) {
  const std::string drawn = StandardErrorOf(true, [] {
    Progress progress(ProgressMode::kAuto, "pack", 100, "tokens");
    progress.Update(42);
    LogWarning("look");
  });
  // The terminal turns a newline into carriage return and newline.
  EXPECT_THAT(drawn, HasSubstr("42 of 100 tokens\r\x1b[Ktool: warning: look\r\n\r\x1b[Kpack  42 %"));
}

TEST_F(ProgressTest, LogLinesAfterItsEndAreLeftAlone) {
  const std::string drawn = StandardErrorOf(true, [] {
    DrawOnce(ProgressMode::kAuto);
    LogInfo("done");
  });
  EXPECT_THAT(drawn, EndsWith("note\r\x1b[Ktool: done\r\n"));
}

TEST_F(ProgressTest, RedrawsAtMostSixTimesASecond) {
  const auto start = std::chrono::steady_clock::now();
  const std::string drawn = StandardErrorOf(true, [&] {
    Progress progress(ProgressMode::kAuto, "pack", 1000000, "tokens");
    for (uint64_t i = 0; std::chrono::steady_clock::now() - start < std::chrono::milliseconds(400); ++i)
      progress.Update(i);
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const size_t redraws = Count(drawn, "pack");
  EXPECT_GE(redraws, 2u);
  EXPECT_LE(static_cast<double>(redraws), 1 + 6 * elapsed.count());
}

TEST_F(ProgressTest, FitsTheTerminal) {
  const std::string drawn = StandardErrorOf(
      true, [] { DrawOnce(ProgressMode::kAuto); }, 20);
  EXPECT_EQ(drawn, "\r\x1b[Kpack  42 %  42 of 1\r\x1b[K");
}

TEST_F(ProgressTest, ManyThreadsMayUpdateAndLog) {
  const std::string drawn = StandardErrorOf(true, [] {
    Progress progress(ProgressMode::kAuto, "pack", 4000, "tokens");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          progress.Update(i);
          if (i % 100 == 0) LogInfo("line");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(Count(drawn, "tool: line\r\n"), 40u);
}

TEST(ProgressLineTest, ShowsRateEtaAndBytesInTheirUnits) {
  const ProgressState tokens = {.label = "train",
                                .done = 250000,
                                .total = 1000000,
                                .unit = "tokens",
                                .rate_per_s = 12500,
                                .note = "loss 3.21"};
  EXPECT_EQ(RenderProgressLine(tokens, 120, 8, false),
            "train  25 % [##......]  250.0 k of 1.00 M tokens  12.5 k/s  ETA 1 m 00 s  loss 3.21");
  const ProgressState bytes = {.label = "read", .done = 1536, .unit = "bytes", .rate_per_s = 2048};
  EXPECT_EQ(RenderProgressLine(bytes, 120, 8, false), "read  1.50 KiB  2.00 KiB/s");
}

TEST(ProgressLineTest, SlowUnitsShowTheirTime) {
  ProgressState steps = {.label = "training", .done = 10, .total = 20, .unit = "steps", .rate_per_s = 0.25};
  EXPECT_EQ(RenderProgressLine(steps, 120, 8, false),
            "training  50 % [####....]  10 of 20 steps  4.00 s/step  ETA 40.0 s");
  steps.rate_per_s = 0.01;
  EXPECT_EQ(RenderProgressLine(steps, 120, 8, false),
            "training  50 % [####....]  10 of 20 steps  1 m 40 s/step  ETA 16 m 40 s");
}

TEST_F(ProgressTest, AResumedCountDoesNotLookFast) {
  const std::string drawn = StandardErrorOf(
      true,
      [] {
        Progress progress(ProgressMode::kAuto, "training", 2000000, "steps");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        progress.Update(1000000);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        progress.Update(1000001);
      },
      200);
  // One step in at least 0.2 s.
  EXPECT_THAT(drawn, ::testing::ContainsRegex("steps  ([0-5]\\.[0-9]/s|[0-9.]+ s/step)"));
}

TEST(ProgressLineTest, MoreThanTheTotalIsAllOfIt) {
  const ProgressState state = {.label = "x", .done = 12, .total = 10, .unit = "steps", .rate_per_s = 1};
  EXPECT_EQ(RenderProgressLine(state, 80, 8, false), "x  100 % [########]  12 of 10 steps  1/s");
}

TEST(ProgressLineTest, NeverExceedsTheWidth) {
  const ProgressState state = {
      .label = "pack", .done = 5, .total = 10, .unit = "tokens", .rate_per_s = 1, .note = "loss 3.21"};
  for (int width = 0; width < 120; ++width)
    EXPECT_LE(RenderProgressLine(state, width, 30, false).size(), static_cast<size_t>(width));
}

}  // namespace
}  // namespace trainwright
