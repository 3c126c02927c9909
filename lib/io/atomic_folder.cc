#include "lib/io/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/io/byte_sink.h"
#include "lib/io/output_link.h"
#include "lib/io/remove_tree.h"

namespace trainwright {
namespace fs = std::filesystem;

AtomicFolder::AtomicFolder(const std::string& path, bool replace)
    : path_(WithoutLastSlash(FollowOutputLink(WithoutLastSlash(path)))), replace_(replace) {
  RemoveStaleTemporariesOf(path_);  // first: it may bring back what made way for another
  std::error_code ignored;
  if (!replace && fs::exists(fs::symlink_status(path_, ignored))) throw ExistsAlready(WithoutLastSlash(path));
  if (fs::exists(path_, ignored) && !fs::is_directory(path_, ignored))
    throw Error(ErrorCode::kUsage, path_, "is no folder, and the output is one");
  lock_ = std::make_unique<LockedTemporary>(path_, LockedTemporary::Kind::kLockOfFolder);
  const std::string folder = lock_->folder_path();
  if (mkdir(folder.c_str(), 0777) != 0) throw SystemError(path_, "create", errno);
  temporary_ = folder;
}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) RemoveOwnTree(temporary_);
}

void AtomicFolder::Commit() {
  SyncFolder(temporary_);
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) {
    if (entry.is_directory() && !entry.is_symlink()) SyncFolder(entry.path());
  }
  const std::string replaced = PutInPlace();
  temporary_.clear();
  if (const std::error_code error = replaced.empty() ? std::error_code() : RemoveOwnTree(replaced)) {
    LogWarning(std::string(SystemError(replaced, "delete", error.value()).what()) +
               "; it is what is left of the folder that was replaced");
  }
  lock_.reset();
  SyncFolder(FolderOf(path_));
}

std::string AtomicFolder::PutInPlace() {
  const auto rename_with = [](unsigned flags, const std::string& from, const std::string& to) {
    return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0;
  };
  const auto failed = [&](int error) {
    return SystemError(path_, "rename", error, "the folder was not written; an older one is untouched");
  };
  if (rename_with(RENAME_NOREPLACE, temporary_, path_)) return "";
  if (errno == EEXIST) {
    if (!replace_) throw ExistsAlready(path_);
    // An exchange leaves no moment without a folder; the old one then has the temporary name.
    if (rename_with(RENAME_EXCHANGE, temporary_, path_)) return temporary_;
  }
  if (errno != EINVAL && errno != ENOSYS) throw failed(errno);
  // Network file systems know no flags.
  std::error_code ignored;
  const bool exists = fs::exists(fs::symlink_status(path_, ignored));
  if (exists && !replace_) throw ExistsAlready(path_);
  const std::string replaced = exists ? lock_->replaced_path() : "";
  if (exists && !rename_with(0, path_, replaced)) throw failed(errno);
  if (rename_with(0, temporary_, path_)) {
    // By that name it could come back with a part of what it held, were this process killed as it deletes it.
    return exists && rename_with(0, replaced, temporary_) ? temporary_ : replaced;
  }
  const int error = errno;
  if (exists && !rename_with(0, replaced, path_))
    throw SystemError(path_, "rename", error, "the older folder is " + replaced);
  throw failed(error);
}

std::string WithoutLastSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace trainwright
