#include "lib/io/descriptor.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {

void WriteAll(int fd, const std::string& name, ByteSpan bytes, OnStop on_stop) {
  while (!bytes.empty()) {
    if (on_stop == OnStop::kThrow) ThrowIfStopped();
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE && OutlivesClosedPipes()) {
        throw Error(ErrorCode::kReaderLeft, name, "the reader went away");
      }
      throw SystemError(name, "write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void OverwriteAll(int fd, const std::string& name, uint64_t offset, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      throw SystemError(name, "write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

int SyncDescriptor(int fd) {
  int result;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

LockOutcome TryToLock(int fd) {
  int result;
  do {
    result = flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return LockOutcome::kTaken;
  return errno == EWOULDBLOCK ? LockOutcome::kHeldByAnother : LockOutcome::kNone;
}

bool IsNameOf(const std::string& path, int fd) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

}  // namespace trainwright
