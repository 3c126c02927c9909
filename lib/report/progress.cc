#include "lib/report/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "lib/base/log.h"
#include "lib/report/progress_line.h"

namespace trainwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRedrawPeriodS = 1.0 / 6.0;
constexpr double kPlainLinePeriodS = 60.0;
constexpr double kRateWindowS = 10.0;  // the rate forgets with this time constant
constexpr int kBarWidth = 30;
constexpr std::string_view kClearLine = "\r\x1b[K";

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool WantsBar(ProgressMode mode) {
  if (mode != ProgressMode::kAuto) return mode == ProgressMode::kAlways;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) == 1 && !dumb && CurrentLogLevel() >= LogLevel::kInfo;
}

int TerminalWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width > 0 ? width : 80;
}

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void WriteToStandardError(std::string_view text) {
  // A bar that cannot be drawn is no reason to stop.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

struct Progress::Impl final : LogListener {
  std::mutex mutex;  // taken inside the log's own lock, never the other way round
  ProgressState state;
  std::string drawn;  // what stands on the terminal; empty: nothing
  bool draws = false, plain_lines = false, color = false;
  Clock::time_point last_drawn, last_plain, last_sample;
  uint64_t last_sample_done = 0;
  bool started = false, sampled = false;

  void BeforeLine() override {
    const std::lock_guard lock(mutex);
    if (!drawn.empty()) WriteToStandardError(kClearLine);
  }
  void AfterLine() override {
    const std::lock_guard lock(mutex);
    if (!drawn.empty()) WriteToStandardError(drawn);
  }
  void Draw() {
    drawn = std::string(kClearLine) + RenderProgressLine(state, TerminalWidth() - 1, kBarWidth, color);
    WriteToStandardError(drawn);
  }
  void SampleRate(Clock::time_point now) {
    if (!started) {
      // What was done before the first call, by a process that this one resumes, took none of its time.
      started = true;
      last_sample = now;
      last_sample_done = state.done;
      return;
    }
    const double elapsed_s = SecondsBetween(last_sample, now);
    if (elapsed_s <= 0 || state.done < last_sample_done) return;
    const double rate = static_cast<double>(state.done - last_sample_done) / elapsed_s;
    const double keep = sampled ? std::exp(-elapsed_s / kRateWindowS) : 0.0;
    state.rate_per_s = keep * state.rate_per_s + (1.0 - keep) * rate;
    sampled = true;
    last_sample = now;
    last_sample_done = state.done;
  }
};

Progress::Progress(ProgressMode mode, std::string label, uint64_t total, std::string unit, bool plain_lines)
    : impl_(std::make_unique<Impl>()) {
  impl_->state.label = std::move(label);
  impl_->state.total = total;
  impl_->state.unit = std::move(unit);
  impl_->draws = WantsBar(mode);
  impl_->plain_lines = plain_lines && !impl_->draws;
  impl_->color = !IsSet("NO_COLOR");
  impl_->last_plain = impl_->last_sample = Clock::now();
  if (impl_->draws) SetLogListener(impl_.get());
}

Progress::~Progress() {
  if (!impl_->draws) return;
  SetLogListener(nullptr);
  if (!impl_->drawn.empty()) WriteToStandardError(kClearLine);
}

void Progress::Update(uint64_t done, const std::string& note) {
  if (!impl_->draws && !impl_->plain_lines) return;
  std::string plain_line;
  {
    const std::lock_guard lock(impl_->mutex);
    const Clock::time_point now = Clock::now();
    impl_->state.done = done;
    impl_->state.note = note;
    if (impl_->draws) {
      const bool first = impl_->drawn.empty();
      if (!first && SecondsBetween(impl_->last_drawn, now) < kRedrawPeriodS) return;
      impl_->SampleRate(now);
      impl_->last_drawn = now;
      impl_->Draw();
    } else if (!impl_->started) {
      impl_->SampleRate(now);
    } else if (SecondsBetween(impl_->last_plain, now) >= kPlainLinePeriodS) {
      impl_->SampleRate(now);
      impl_->last_plain = now;
      plain_line = RenderProgressLine(impl_->state, 1000, 0, false);
    }
  }
  if (!plain_line.empty()) LogInfo(plain_line);
}

bool Progress::active() const {
  return impl_->draws;
}

}  // namespace trainwright
