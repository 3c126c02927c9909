/// SIGINT, SIGTERM and SIGHUP as a flag that loops poll, so that work stops at a clean place.
///
/// The handlers are installed without SA_RESTART: a blocked read returns EINTR and its loop polls the flag.
/// The first signal sets the flag; a second SIGINT ends the process at once. A SIGHUP that is ignored when
/// the process starts, as under nohup, stays ignored.
#pragma once

namespace trainwright {

/// Installs the handlers. With `ignore_sigpipe` a closed pipe is an EPIPE error instead of the death that a
/// filter wants. A file that outgrows `ulimit -f` is an EFBIG error always.
void InstallSignalHandlers(bool ignore_sigpipe);

/// The signal that asked to stop, or 0.
int StopSignal() noexcept;

/// "SIGINT", "SIGHUP" or "SIGTERM".
const char* StopSignalName(int signal_number) noexcept;

/// Of a process that such a signal stopped: 130 for SIGINT, else 143, as a terminal that was closed (SIGHUP)
/// asks for the same as SIGTERM.
int StopStatus(int signal_number) noexcept;

/// \throws Error{kInterrupted or kTerminated} once a signal asked to stop
void ThrowIfStopped();

/// Pretends that a signal arrived (0 clears the flag); for tests.
void SetStopSignalForTest(int signal_number) noexcept;

}  // namespace trainwright
