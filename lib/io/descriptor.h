/// What is done with open files: whole writes, whatever pieces the system takes them in and whatever signals
/// arrive, and locks.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/bytes.h"

namespace trainwright {

/// What a write does once a signal asked to stop. A checkpoint is still written; a filter blocked on a full
/// pipe gives up.
enum class OnStop { kFinish, kThrow };

/// \param name for messages
/// \throws Error{kIo}; Error{kReaderLeft} as OutliveClosedPipes says (lib/base/signals.h); of kThrow
///     Error{kInterrupted, kTerminated}
void WriteAll(int fd, const std::string& name, ByteSpan bytes, OnStop on_stop);

/// Writes at an offset.
/// \throws Error{kIo}
void OverwriteAll(int fd, const std::string& name, uint64_t offset, ByteSpan bytes);

/// fsync, again where a signal interrupts it.
/// \returns 0, or -1 with errno
int SyncDescriptor(int fd);

/// kNone: it cannot be locked there, as on file systems without locks.
enum class LockOutcome { kTaken, kHeldByAnother, kNone };
/// Takes an flock that no other process shares, if it is free. It lasts until the file is closed.
LockOutcome TryToLock(int fd);

/// Whether a path, where it is no link, is a name of an open file: it may have got another since it was
/// opened.
bool IsNameOf(const std::string& path, int fd);

}  // namespace trainwright
