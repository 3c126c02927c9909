#include "lib/io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// The file in the folder that is locked.
std::string LockFileOf(const std::string& folder) {
  return folder + "/.lock";
}

/// \returns false, and errno, where another holds it
bool TakeLock(int fd) {
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    // Who only asks, see IsFolderInUse, has a share of it for some microseconds.
    if (errno != EWOULDBLOCK || flock(fd, LOCK_SH | LOCK_NB) != 0) return false;
    flock(fd, LOCK_UN);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = LockFileOf(folder);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(path, "create", errno);
  if (!TakeLock(fd_)) {
    const int saved = errno;
    close(fd_);
    if (saved != EWOULDBLOCK) throw SystemError(path, "lock", saved);
    throw Error(ErrorCode::kUsage, folder, "is in use by another process", "",
                "wait for it to end, or write elsewhere with -o / --out");
  }
}

FolderLock::~FolderLock() {
  close(fd_);
}

bool IsFolderInUse(const std::string& folder) {
  const int fd = open(LockFileOf(folder).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return is_held;
}

}  // namespace trainwright
