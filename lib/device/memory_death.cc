#include "lib/device/memory_death.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// What fails for want of memory is smaller than this, but for tensors, which say so. So a crash of any cause
/// counts as one for want of memory where less is left under a limit (ulimit -v, ulimit -d, --mem-fraction),
/// or where the system promises no more memory than it has (vm.overcommit_memory 2); never elsewhere, for
/// there the system promises this much to everyone. The message names the signal.
constexpr size_t kProbeBytes = size_t{64} << 20;
constexpr size_t kHandlerStackBytes = size_t{64} << 10;

// A signal handler can reach nothing but globals. The stack of the main thread may be what could not grow.
alignas(64) std::byte g_handler_stack[kHandlerStackBytes];
std::atomic_flag g_told = ATOMIC_FLAG_INIT;

bool CanGetMemory() {
  void* const probe = mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, kProbeBytes);
  return true;
}

const char* NameOf(int signal_number) {
  switch (signal_number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

void Say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

// Calls only what may be called in a signal handler.
void OnCrash(int signal_number) {
  if (CanGetMemory()) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return;
  }
  if (g_told.test_and_set()) {
    for (;;) pause();
  }
  const char* const tool = program_invocation_short_name;
  for (const char* text :
       {tool, ": error: memory: a library ended the process, which can get no more of it (",
        NameOf(signal_number), ")\n", tool,
        ": hint: lower the batch or --threads, or give the process more memory\n"}) {
    Say(text);
  }
  _exit(static_cast<int>(ErrorCode::kIo));
}

}  // namespace

void TellDeathsForMemory() {
  stack_t stack = {};
  stack.ss_sp = g_handler_stack;
  stack.ss_size = sizeof(g_handler_stack);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnCrash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGABRT})
    sigaction(signal_number, &action, nullptr);
}

}  // namespace trainwright
