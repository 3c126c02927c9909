#include "lib/base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "lib/base/error.h"

namespace trainwright {
namespace {

// A signal handler can reach nothing but a global: the one mutable global of the suite.
std::atomic<int> g_stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void OnStopSignal(int signal_number) {
  if (g_stop_signal.exchange(signal_number) != 0 && signal_number == SIGINT) _exit(128 + SIGINT);
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
  g_stop_signal = signal_number;
}

}  // namespace trainwright
