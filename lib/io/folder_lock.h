/// Who has a folder: one process at a time, until it ends.
#pragma once

#include <string>

namespace trainwright {

/// An exclusive advisory lock on a folder, held until destroyed or the process ends (kill -9 included).
class FolderLock {
 public:
  /// Creates `folder`/.lock.
  /// \throws Error{kUsage} when another process holds it, Error{kIo}
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

/// Whether somebody holds the lock. Makes and changes nothing, and keeps nobody from taking it. Thread-safe.
/// \returns false where it is not known: the file is missing or may not be read
bool IsFolderInUse(const std::string& folder);

}  // namespace trainwright
