#include "lib/base/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int64_t kCopiesCome_ns = 1'000'000'000;  // after the first signal

// A signal handler can reach nothing but globals.
std::atomic<int> g_stop_signal{0};
std::atomic<int64_t> g_first_signal_ns{0};  // by the monotonic clock; 0: none came
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);
// The disposition of SIGPIPE, too, is the process's.
std::atomic<bool> g_outlives_closed_pipes{false};

int64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void OnStopSignal(int signal_number) {
  const int64_t now_ns = MonotonicNs();
  int64_t first_ns = 0;
  const bool is_first = g_first_signal_ns.compare_exchange_strong(first_ns, now_ns);
  if (!is_first && signal_number == SIGINT && now_ns - first_ns > kCopiesCome_ns) _exit(128 + SIGINT);
  g_stop_signal = signal_number;
}

}  // namespace

void InstallSignalHandlers(bool ignore_sigpipe) {
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction at_start = {};
  sigaction(SIGHUP, nullptr, &at_start);
  if (at_start.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, ignore_sigpipe ? SIG_IGN : SIG_DFL);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` is an error like a full disk, not a death
}

void OutliveClosedPipes() {
  struct sigaction before = {};
  sigaction(SIGPIPE, nullptr, &before);
  g_outlives_closed_pipes = before.sa_handler == SIG_DFL;
  signal(SIGPIPE, SIG_IGN);
}

bool OutlivesClosedPipes() noexcept {
  return g_outlives_closed_pipes;
}

int StopSignal() noexcept {
  return g_stop_signal.load(std::memory_order_relaxed);
}

const char* StopSignalName(int signal_number) noexcept {
  if (signal_number == SIGINT) return "SIGINT";
  return signal_number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

int StopStatus(int signal_number) noexcept {
  return static_cast<int>(signal_number == SIGINT ? ErrorCode::kInterrupted : ErrorCode::kTerminated);
}

void ThrowIfStopped() {
  const int signal_number = StopSignal();
  if (signal_number == 0) return;
  throw Error(static_cast<ErrorCode>(StopStatus(signal_number)), "",
              std::string("stopped by ") + StopSignalName(signal_number));
}

void SetStopSignalForTest(int signal_number) noexcept {
  g_first_signal_ns = signal_number == 0 ? 0 : MonotonicNs();
  g_stop_signal = signal_number;
}

}  // namespace trainwright
