#include "lib/io/temporary_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/io/descriptor.h"
#include "lib/io/remove_tree.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".tmp-", kLockEnd = ".lock", kReplacedEnd = ".replaced";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kRandomLetters = 8, kMostDigitsOfProcess = 7;

std::string RandomLetters() {
  std::array<uint8_t, kRandomLetters> bytes;
  if (getentropy(bytes.data(), bytes.size()) != 0) throw SystemError("random numbers", "getentropy", errno);
  std::string letters;
  for (const uint8_t byte : bytes) letters += kLetters[byte % kLetters.size()];
  return letters;
}

/// A name taken apart.
struct TemporaryName {
  std::string output, ending;  ///< ".<output>.tmp-<ending>"
  bool is_random() const {
    return ending.size() == kRandomLetters && ending.find_first_not_of(kLetters) == std::string::npos;
  }
  bool is_of_process() const {
    return ending.size() <= kMostDigitsOfProcess &&
           ending.find_first_not_of("0123456789") == std::string::npos;
  }
};

std::optional<TemporaryName> Parse(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  if (!name.starts_with('.') || mark == std::string_view::npos || mark < 2) return {};
  const std::string_view ending = name.substr(mark + kMark.size());
  if (ending.empty()) return {};
  return TemporaryName{std::string(name.substr(1, mark - 1)), std::string(ending)};
}

std::string_view WithoutLockEnd(std::string_view name) {
  if (name.ends_with(kLockEnd)) name.remove_suffix(kLockEnd.size());
  return name;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) names.push_back(entry.path().filename());
  return names;
}

int OpenToJudge(const std::string& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = open(path.c_str(), O_RDWR | kFlags);  // network file systems lock nothing that is only read
  return fd >= 0 || errno != EACCES ? fd : open(path.c_str(), O_RDONLY | kFlags);
}

/// Removes the folder of a dead writer's lock. What made way for it gets its name back where that is free.
/// \returns false where it cannot get it
bool ClearFolderOf(const std::string& lock, const std::string& final_path) {
  const std::string folder(WithoutLockEnd(lock)), replaced = folder + std::string(kReplacedEnd);
  std::error_code ignored;
  const auto is_there = [&](const std::string& path) {
    return fs::exists(fs::symlink_status(path, ignored));
  };
  if (is_there(replaced) && !is_there(final_path) && std::rename(replaced.c_str(), final_path.c_str()) != 0)
    return false;
  RemoveOwnTree(replaced);
  RemoveOwnTree(folder);
  return true;
}

/// Removes a temporary, and the folder that it is the lock of, if nobody holds it.
/// \param final_path that it is the temporary of
bool RemoveIfStale(const std::string& path, const std::string& final_path) {
  const int fd = OpenToJudge(path);
  if (fd < 0) return false;
  struct stat opened;
  const bool stale = fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) &&
                     TryToLock(fd) == LockOutcome::kTaken && IsNameOf(path, fd);
  // The lock goes last: while it is there, the folder is known.
  const bool done = stale && (!path.ends_with(kLockEnd) || ClearFolderOf(path, final_path));
  const bool removed = done && unlink(path.c_str()) == 0;
  close(fd);
  return removed;
}

}  // namespace

LockedTemporary::LockedTemporary(const std::string& final_path, Kind kind) {
  constexpr int kMostTries = 100;
  const std::string folder = FolderOf(final_path);
  const std::string stem = folder + "/." + final_path.substr(final_path.rfind('/') + 1) + std::string(kMark);
  for (int tries = 0; tries < kMostTries; ++tries) {
    path_ = stem + RandomLetters() + std::string(kind == Kind::kLockOfFolder ? kLockEnd : "");
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0)
      throw SystemError(final_path, "create", errno, "the folder must exist and be writable: " + folder);
    // Another process may judge it before it is locked.
    struct stat info;
    const bool locked = TryToLock(fd_) != LockOutcome::kHeldByAnother;
    if (locked && fstat(fd_, &info) == 0 && info.st_nlink > 0) return;
    unlink(path_.c_str());
    close(fd_);
    fd_ = -1;
  }
  throw SystemError(final_path, "create a temporary file", EEXIST);
}

LockedTemporary::~LockedTemporary() {
  if (!path_.empty()) unlink(path_.c_str());
  close(fd_);
}

std::string LockedTemporary::folder_path() const {
  return std::string(WithoutLockEnd(path_));
}

std::string LockedTemporary::replaced_path() const {
  return folder_path() + std::string(kReplacedEnd);
}

int RemoveStaleTemporaries(const std::string& folder, const std::function<bool(const std::string&)>& is_of) {
  int removed = 0;
  for (const std::string& file_name : NamesIn(folder)) {
    const std::optional<TemporaryName> name = Parse(WithoutLockEnd(file_name));
    if (!name || !name->is_random() || !is_of(name->output)) continue;
    if (RemoveIfStale(folder + "/" + file_name, folder + "/" + name->output)) ++removed;
  }
  return removed;
}

int RemoveStaleTemporariesOf(const std::string& path) {
  const std::string wanted = path.substr(path.rfind('/') + 1);
  return RemoveStaleTemporaries(FolderOf(path), [&](const std::string& name) { return name == wanted; });
}

int RemoveOldTemporaries(const std::string& folder, const std::function<bool(const std::string&)>& is_of) {
  int removed = 0;
  for (const std::string& file_name : NamesIn(folder)) {
    const std::optional<TemporaryName> name = Parse(file_name);
    if (!name || !name->is_of_process() || !is_of(name->output)) continue;
    if (!RemoveOwnTree(folder + "/" + file_name)) ++removed;
  }
  return removed;
}

}  // namespace trainwright
