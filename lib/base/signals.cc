#include "lib/base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

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
  signal(SIGPIPE, ignore_sigpipe ? SIG_IGN : SIG_DFL);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` is an error like a full disk, not a death
}

int StopSignal() noexcept {
  return g_stop_signal.load(std::memory_order_relaxed);
}

void ThrowIfStopped() {
  const int signal_number = StopSignal();
  if (signal_number == 0) return;
  throw Error(signal_number == SIGINT ? ErrorCode::kInterrupted : ErrorCode::kTerminated, "",
              signal_number == SIGINT ? "stopped by SIGINT" : "stopped by SIGTERM");
}

void SetStopSignalForTest(int signal_number) noexcept {
  g_stop_signal = signal_number;
}

}  // namespace trainwright
