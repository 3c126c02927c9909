/// Names for what is not complete yet, and which of them belong to nobody any more.
///
/// The temporary of "<name>" is ".<name>.tmp-<eight random letters and digits>" in the same folder. It is
/// always made new, through no link, and its writer holds an flock on it as long as it lives: of a file on
/// itself, of a folder on a file beside it with ".lock" after its name. Whoever can take the lock knows that
/// the writer is gone, in whatever container, and on whatever host as far as the file system passes locks on,
/// it was. Where there are no locks at all, nothing is taken for stale.
///
/// A folder that makes way for another has ".replaced" after the other's temporary name until that is in its
/// place.
#pragma once

#include <functional>
#include <string>

namespace trainwright {

/// A new empty file, locked. Not thread-safe.
class LockedTemporary {
 public:
  enum class Kind { kFile, kLockOfFolder };
  /// \param final_path of the file or folder that it stands for
  /// \throws Error{kIo}
  LockedTemporary(const std::string& final_path, Kind kind);
  /// Deletes the file, unless Forget() was called, and lets go of the lock.
  ~LockedTemporary();
  LockedTemporary(const LockedTemporary&) = delete;
  LockedTemporary& operator=(const LockedTemporary&) = delete;

  const std::string& path() const { return path_; }
  /// Of Kind::kLockOfFolder: the name for the folder, which is the caller's to make and to remove.
  std::string folder_path() const;
  /// Of Kind::kLockOfFolder: the name for a folder that makes way for it.
  std::string replaced_path() const;
  /// Open for writing.
  int fd() const { return fd_; }
  /// The name has another file by now, or none.
  void Forget() { path_.clear(); }

 private:
  std::string path_;
  int fd_ = -1;
};

/// Deletes temporaries of dead writers. What made way for a folder that did not arrive gets its name back.
/// \param is_of given the name of an output, says whether its temporaries are meant
/// \returns how many files and folders
int RemoveStaleTemporaries(const std::string& folder, const std::function<bool(const std::string&)>& is_of);
/// Of one output.
int RemoveStaleTemporariesOf(const std::string& path);
/// Deletes temporaries of version 0.1.0, whose names end in a process id and which have no lock: for who
/// holds the lock under which they were written, so that none can be in use.
int RemoveOldTemporaries(const std::string& folder, const std::function<bool(const std::string&)>& is_of);

}  // namespace trainwright
