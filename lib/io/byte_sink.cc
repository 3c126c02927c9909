#include "lib/io/byte_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/io/descriptor.h"
#include "lib/io/output_link.h"

namespace trainwright {
namespace {

/// rename, but not onto a file that is there.
/// \returns 0, or -1 with errno
int RenameToNew(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // The file system knows no such rename.
  if (link(from, to) != 0) return -1;
  unlink(from);
  return 0;
}

/// Has a file system report what it keeps for the close, and leaves the file open: its lock is to last.
/// \returns 0, or -1 with errno
int CloseCopyOf(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? -1 : close(copy);
}

// A device, pipe or socket: renaming a file over it would destroy it.
class SpecialFileSink final : public ByteSink {
 public:
  SpecialFileSink(std::string path, OnStop on_stop) : path_(std::move(path)), on_stop_(on_stop) {
    const auto descriptor = OutputDescriptor(path_);
    // One that is opened anew would write from the beginning of its file.
    fd_ = descriptor ? fcntl(*descriptor, F_DUPFD_CLOEXEC, 0) : open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) throw SystemError(path_, "open", errno);
  }
  ~SpecialFileSink() override {
    if (fd_ >= 0) close(fd_);
  }
  void Write(ByteSpan bytes) override { WriteAll(fd_, path_, bytes, on_stop_); }
  void Commit() override {
    if (close(std::exchange(fd_, -1)) != 0) throw SystemError(path_, "close", errno);
  }
  const std::string& name() const override { return path_; }
  int fd() const { return fd_; }

 private:
  std::string path_;
  OnStop on_stop_;
  int fd_ = -1;
};

/// Whether a path is no file that another could replace.
bool IsSpecial(const std::string& path) {
  std::error_code ignored;
  return OutputDescriptor(path).has_value() ||
         std::filesystem::is_other(std::filesystem::status(path, ignored));
}

void RefuseTerminal(int fd, const std::string& name, bool refuse) {
  if (!refuse || isatty(fd) != 1) return;
  throw Error(ErrorCode::kUsage, name, "is a terminal, and the output is binary", "",
              "redirect it, name a file with -o, or force it with -f");
}

}  // namespace

Error ExistsAlready(const std::string& path) {
  return Error(ErrorCode::kUsage, path, "exists already", "",
               "choose another name with -o, or replace it with -f");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw SystemError(folder, "open", errno);
  const int result = SyncDescriptor(fd);
  const int saved = errno;
  close(fd);
  if (result != 0 && saved != EINVAL) throw SystemError(folder, "fsync", saved);
}

AtomicFileSink::AtomicFileSink(std::string path, std::optional<uint32_t> permissions)
    : path_(std::move(path)),
      temporary_(std::make_unique<LockedTemporary>(path_, LockedTemporary::Kind::kFile)) {
  if (permissions && fchmod(temporary_->fd(), *permissions) != 0) {  // beyond the umask
    throw SystemError(path_, "chmod", errno);
  }
}

void AtomicFileSink::Write(ByteSpan bytes) {
  WriteAll(temporary_->fd(), path_, bytes, OnStop::kFinish);
  size_bytes_ += bytes.size();
}

void AtomicFileSink::Overwrite(uint64_t offset, ByteSpan bytes) {
  TRAINWRIGHT_CHECK(offset + bytes.size() <= size_bytes_);
  OverwriteAll(temporary_->fd(), path_, offset, bytes);
}

void AtomicFileSink::SetFinalName(const std::string& file_name) {
  path_ = FolderOf(path_) + "/" + file_name;
}

void AtomicFileSink::Commit() {
  const std::unique_ptr<LockedTemporary> temporary = std::move(temporary_);
  if (SyncDescriptor(temporary->fd()) != 0)
    throw SystemError(path_, "fsync", errno, "the file was not written; an older one is untouched");
  const auto put_in_place = keep_existing_ ? RenameToNew : rename;
  const bool in_place =
      CloseCopyOf(temporary->fd()) == 0 && put_in_place(temporary->path().c_str(), path_.c_str()) == 0;
  if (!in_place) {
    const int saved = errno;
    if (keep_existing_ && saved == EEXIST) throw ExistsAlready(path_);
    throw SystemError(path_, "rename", saved, "the file was not written; an older one is untouched");
  }
  temporary->Forget();
  try {
    SyncFolder(FolderOf(path_));
  } catch (const Error& error) {
    throw Error(ErrorCode::kIo, path_, "is in place but may not survive a power loss: " + error.problem());
  }
}

void StdoutSink::Write(ByteSpan bytes) {
  WriteAll(STDOUT_FILENO, name(), bytes, on_stop_);
}

const std::string& StdoutSink::name() const {
  static const std::string name = "standard output";
  return name;
}

const std::string& MemorySink::name() const {
  static const std::string name = "memory";
  return name;
}

void MemorySink::Overwrite(uint64_t offset, ByteSpan bytes) {
  TRAINWRIGHT_CHECK(offset + bytes.size() <= bytes_.size());
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
}

SpooledSink::SpooledSink(std::unique_ptr<ByteSink> target)
    : target_(std::move(target)), file_(OpenTemporaryFile()) {}

void SpooledSink::Write(ByteSpan bytes) {
  ThrowIfStopped();
  file_->Append(bytes);
}

void SpooledSink::Overwrite(uint64_t offset, ByteSpan bytes) {
  TRAINWRIGHT_CHECK(offset + bytes.size() <= file_->size_bytes());
  file_->WriteAt(offset, bytes);
}

void SpooledSink::Commit() {
  std::vector<uint8_t> piece(1 << 20);
  for (uint64_t offset = 0; offset < file_->size_bytes();) {
    const size_t size = std::min<uint64_t>(piece.size(), file_->size_bytes() - offset);
    file_->ReadAt(offset, piece.data(), size);
    target_->Write(ByteSpan(piece).first(size));
    offset += size;
  }
  target_->Commit();
}

std::optional<uint32_t> PermissionsOf(const std::string& path) {
  if (path == "-") return {};
  struct stat info;
  if (stat(path.c_str(), &info) != 0) throw SystemError(path, "stat", errno);
  if (!S_ISREG(info.st_mode)) return {};
  return info.st_mode & 0777u;
}

std::unique_ptr<ByteSink> OpenSink(const std::string& path, bool binary, bool allow_terminal,
                                   std::optional<uint32_t> permissions, OnStop on_stop) {
  if (IsStandardOutput(path)) {
    RefuseTerminal(STDOUT_FILENO, "standard output", binary && !allow_terminal);
    return std::make_unique<StdoutSink>(on_stop);
  }
  if (IsSpecial(path)) {
    auto sink = std::make_unique<SpecialFileSink>(path, on_stop);
    RefuseTerminal(sink->fd(), path, binary && !allow_terminal);
    return sink;
  }
  const std::string file = FollowOutputLink(path);
  if (IsFolderPath(path)) throw Error(ErrorCode::kUsage, path, "is a folder, and the output is one file");
  RemoveStaleTemporariesOf(file);
  return std::make_unique<AtomicFileSink>(file, permissions);
}

void RefuseToReplaceInputs(const std::string& output, const std::vector<std::string>& inputs) {
  if (output.empty() || IsStandardOutput(output)) return;
  std::error_code ignored;
  if (std::filesystem::is_other(std::filesystem::status(output, ignored))) return;
  const std::string folder = FolderOf(FollowOutputLink(output));
  for (const std::string& input : inputs) {
    if (input == "-") continue;
    const bool same = std::filesystem::equivalent(input, output, ignored);
    const bool inside = !same && !IsFolderPath(output) && std::filesystem::is_directory(input, ignored) &&
                        std::filesystem::equivalent(input, folder, ignored);
    if (!same && !inside) continue;
    throw Error(
        ErrorCode::kUsage, output,
        same ? "is an input, which the output would replace" : "lies in " + input + ", which is an input", "",
        "choose another -o");
  }
}

void WriteFileAtomically(const std::string& path, ByteSpan content) {
  if (path != "-" && IsStandardOutput(path)) {
    StdoutSink().Write(content);
    return;
  }
  if (IsSpecial(path)) {
    SpecialFileSink sink(path, OnStop::kThrow);
    sink.Write(content);
    sink.Commit();
    return;
  }
  RemoveStaleTemporariesOf(path);
  AtomicFileSink sink(path);
  sink.Write(content);
  sink.Commit();
}

void AppendDurably(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) throw SystemError(path, "create", errno);
  const ssize_t count = write(fd, text.data(), text.size());
  int failure = 0;
  if (count != static_cast<ssize_t>(text.size())) failure = count < 0 ? errno : ENOSPC;
  if (failure == 0 && fsync(fd) != 0) failure = errno;
  close(fd);
  if (failure != 0) throw SystemError(path, "write", failure);
  SyncFolder(FolderOf(path));
}

bool IsFolderPath(const std::string& path) {
  std::error_code ignored;
  return path != "-" && (path.ends_with('/') || std::filesystem::is_directory(path, ignored));
}

}  // namespace trainwright
