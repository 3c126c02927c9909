/// SIGINT, SIGTERM and SIGHUP as a flag that loops poll, so that work stops at a clean place.
///
/// The handlers are installed without SA_RESTART: a blocked read returns EINTR and its loop polls the flag.
/// The first signal sets the flag; a SIGINT more than a second later ends the process at once. One that
/// comes sooner is a copy of the first: timeout(1) signals its process and then its group, and a launcher
/// passes on the ^C that the terminal has sent to all. A SIGHUP that is ignored when the process starts, as
/// under nohup, stays ignored.
#pragma once

namespace trainwright {

/// Installs the handlers. With `ignore_sigpipe` a closed pipe is an EPIPE error instead of the death that a
/// filter wants. A file that outgrows `ulimit -f` is an EFBIG error always.
void InstallSignalHandlers(bool ignore_sigpipe);

/// Of a process that others wait for: from here on no closed pipe ends it silently. A write to one is an
/// EPIPE error; where SIGPIPE would have ended it, as it ends a filter, WriteAll (lib/io/descriptor.h) makes
/// Error{kReaderLeft} of that.
void OutliveClosedPipes();

/// Whether SIGPIPE would have ended this process but for OutliveClosedPipes.
bool OutlivesClosedPipes() noexcept;

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
