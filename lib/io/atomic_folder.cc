#include "lib/io/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"

namespace trainwright {
namespace fs = std::filesystem;

AtomicFolder::AtomicFolder(const std::string& path, bool replace)
    : path_(WithoutLastSlash(path)), replace_(replace) {
  std::error_code ignored;
  if (!replace && fs::exists(fs::symlink_status(path_, ignored))) throw ExistsAlready(path_);
  if (fs::exists(path_, ignored) && !fs::is_directory(path_, ignored))
    throw Error(ErrorCode::kUsage, path_, "is no folder, and the output is one");
  RemoveStaleTemporariesOf(path_);
  lock_ = std::make_unique<LockedTemporary>(path_, LockedTemporary::Kind::kLockOfFolder);
  const std::string folder = lock_->folder_path();
  if (mkdir(folder.c_str(), 0777) != 0) throw SystemError(path_, "create", errno);
  temporary_ = folder;
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::Commit() {
  SyncFolder(temporary_);
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) {
    if (entry.is_directory() && !entry.is_symlink()) SyncFolder(entry.path());
  }
  // An exchange leaves no moment without a folder; the old one then has the temporary name.
  const auto rename_with = [&](unsigned flags) {
    return renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) == 0;
  };
  bool done = rename_with(RENAME_NOREPLACE);
  // Network file systems know no flags; the name was free when this began.
  if (!done && (errno == EINVAL || errno == ENOSYS)) done = rename_with(0);
  if (!done && errno == EEXIST && !replace_) throw ExistsAlready(path_);
  const bool exchanged = !done && errno == EEXIST && rename_with(RENAME_EXCHANGE);
  if (!done && !exchanged)
    throw SystemError(path_, "rename", errno, "the folder was not written; an older one is untouched");
  std::error_code ignored;
  if (exchanged) fs::remove_all(temporary_, ignored);
  temporary_.clear();
  lock_.reset();
  SyncFolder(FolderOf(path_));
}

std::string WithoutLastSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace trainwright
