/// Whether a file was written to while it was read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/error.h"

namespace trainwright {

/// A regular file at a moment.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  nlink_t links = 0;
  mode_t mode = 0;
  uid_t owner = 0;
  gid_t group = 0;
  uint64_t size_bytes = 0;
  /// Nanoseconds since 1970: of the last write, and of the last change of content, names or attributes.
  int64_t modified_ns = 0, changed_ns = 0;
};

/// \param path "-" is standard input
/// \returns nullopt for what has no lasting state: pipes, devices
/// \throws Error{kIo}
std::optional<FileState> StateOf(const std::string& path);
/// \param name of the descriptor's file, for messages
std::optional<FileState> StateOf(int fd, const std::string& name);
/// Likewise, but where the file was written to just now, waits for the next tick of the clock, some
/// milliseconds: writes within one tick have the same time, so that the next one would go unseen.
std::optional<FileState> SettledStateOf(int fd, const std::string& name);
std::optional<FileState> SettledStateOf(const std::string& path);

bool IsSameFile(const FileState& a, const FileState& b);
/// Whether the content may differ. A write whose time was put back is known by the time of the last change,
/// unless another number of links, another mode or another owner accounts for that.
/// \param before,now of the same file
bool WasWrittenTo(const FileState& before, const FileState& now);
/// The Error{kBadInput} of a file that was.
Error ChangedWhileRead(const std::string& name, const FileState& before, const FileState& now);
/// \throws Error{kBadInput} when the file was written to. One that is gone, or whose name another file has
///     taken, was not.
void ThrowIfWrittenSince(const FileState& before, const std::string& path);
/// For files that are opened by their name more than once: another file that has taken the name is a change,
/// too.
/// \throws Error{kBadInput}; Error{kIo} when the file is gone
void ThrowIfChangedSince(const FileState& before, const std::string& path);

/// Watches an open file. Immutable, thread-safe.
class FileWatch {
 public:
  /// \param fd stays the caller's, and open
  /// \param name path of the file, or what to call it in messages
  /// \throws Error{kIo}
  FileWatch(int fd, std::string name);
  /// Called after each read, it says that all that was read is of one state of the file.
  /// \throws Error{kBadInput} when the file was written to
  void ThrowIfWritten() const;

 private:
  int fd_;
  std::string name_;
  std::optional<FileState> state_;
};

}  // namespace trainwright
