#include "lib/io/file_state.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace trainwright {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

std::optional<FileState> StateFrom(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return {};
  return FileState{.device = info.st_dev,
                   .inode = info.st_ino,
                   .links = info.st_nlink,
                   .mode = info.st_mode,
                   .owner = info.st_uid,
                   .group = info.st_gid,
                   .size_bytes = static_cast<uint64_t>(info.st_size),
                   .modified_ns = Nanoseconds(info.st_mtim),
                   .changed_ns = Nanoseconds(info.st_ctim)};
}

/// Whether a write now could leave the time of the file's last change as it is.
bool IsOfThisTick(const FileState& state) {
  constexpr int64_t kLongestTickNs = 10'000'000;
  timespec now;
  // The clock that file systems take their times from.
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return false;
  const int64_t ahead_ns = state.changed_ns - Nanoseconds(now);
  return ahead_ns >= 0 && ahead_ns <= kLongestTickNs;
}

template <typename Look>
std::optional<FileState> Settled(const Look& look) {
  constexpr int kMostWaits = 20;
  std::optional<FileState> state = look();
  for (int waits = 0; state && IsOfThisTick(*state) && waits < kMostWaits; ++waits) {
    usleep(1000);
    state = look();
  }
  return state;
}

bool LeadsTo(const std::string& path, const FileState& file) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && info.st_dev == file.device && info.st_ino == file.inode;
}

}  // namespace

std::optional<FileState> StateOf(const std::string& path) {
  if (path == "-") return StateOf(STDIN_FILENO, "standard input");
  struct stat info;
  if (stat(path.c_str(), &info) != 0) throw SystemError(path, "open", errno);
  return StateFrom(info);
}

std::optional<FileState> StateOf(int fd, const std::string& name) {
  struct stat info;
  if (fstat(fd, &info) != 0) throw SystemError(name, "stat", errno);
  return StateFrom(info);
}

std::optional<FileState> SettledStateOf(int fd, const std::string& name) {
  return Settled([&] { return StateOf(fd, name); });
}

std::optional<FileState> SettledStateOf(const std::string& path) {
  return Settled([&] { return StateOf(path); });
}

bool IsSameFile(const FileState& a, const FileState& b) {
  return a.device == b.device && a.inode == b.inode;
}

bool WasWrittenTo(const FileState& before, const FileState& now) {
  if (now.size_bytes != before.size_bytes || now.modified_ns != before.modified_ns) return true;
  const bool same_attributes = now.links == before.links && now.mode == before.mode &&
                               now.owner == before.owner && now.group == before.group;
  return same_attributes && now.changed_ns != before.changed_ns;
}

Error ChangedWhileRead(const std::string& name, const FileState& before, const FileState& now) {
  const std::string sizes =
      "from " + std::to_string(before.size_bytes) + " to " + std::to_string(now.size_bytes) + " bytes";
  const std::string how = now.size_bytes < before.size_bytes   ? "it was cut " + sizes
                          : now.size_bytes > before.size_bytes ? "it grew " + sizes
                                                               : "it was written to";
  return Error(ErrorCode::kBadInput, name, "changed while it was read: " + how, "",
               "wait until its writer is done, or read a copy, and run this again");
}

void ThrowIfWrittenSince(const FileState& before, const std::string& path) {
  struct stat info;
  if (path != "-" && stat(path.c_str(), &info) != 0) return;
  const std::optional<FileState> now = path == "-" ? StateOf(path) : StateFrom(info);
  if (!now || !IsSameFile(before, *now) || !WasWrittenTo(before, *now)) return;
  throw ChangedWhileRead(path == "-" ? "standard input" : path, before, *now);
}

void ThrowIfChangedSince(const FileState& before, const std::string& path) {
  const std::optional<FileState> now = StateOf(path);
  if (now && IsSameFile(before, *now) && !WasWrittenTo(before, *now)) return;
  throw ChangedWhileRead(path, before, now.value_or(before));
}

FileWatch::FileWatch(int fd, std::string name)
    : fd_(fd), name_(std::move(name)), state_(SettledStateOf(fd_, name_)) {}

void FileWatch::ThrowIfWritten() const {
  if (!state_) return;
  const std::optional<FileState> now = StateOf(fd_, name_);
  if (!now || !WasWrittenTo(*state_, *now)) return;
  const bool by_times_of_writing =
      now->size_bytes != state_->size_bytes || now->modified_ns != state_->modified_ns;
  // Another name, or another file in its place, is no write.
  if (!by_times_of_writing && !LeadsTo(name_, *state_)) return;
  throw ChangedWhileRead(name_, *state_, *now);
}

}  // namespace trainwright
