#include "lib/io/byte_sink.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

constexpr char kTemporaryMark[] = ".tmp-";

enum class OnStop { kFinish, kThrow };

// A checkpoint is still written after a stop signal; a filter blocked on a full pipe gives up.
void WriteAll(int fd, const std::string& name, ByteSpan bytes, OnStop on_stop) {
  while (!bytes.empty()) {
    if (on_stop == OnStop::kThrow) ThrowIfStopped();
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      throw SystemError(name, "write", errno,
                        errno == ENOSPC ? "free some space, or write to another disk" : "");
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw SystemError(folder, "open", errno);
  const int result = fsync(fd);
  const int saved = errno;
  close(fd);
  if (result != 0 && saved != EINVAL) throw SystemError(folder, "fsync", saved);
}

AtomicFileSink::AtomicFileSink(std::string path) : path_(std::move(path)) {
  const std::string folder = FolderOf(path_);
  temporary_ = folder + "/." + path_.substr(path_.rfind('/') + 1) + kTemporaryMark + std::to_string(getpid());
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(path_, "create", errno, "the folder must exist and be writable: " + folder);
}

AtomicFileSink::~AtomicFileSink() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void AtomicFileSink::Write(ByteSpan bytes) {
  WriteAll(fd_, path_, bytes, OnStop::kFinish);
  size_bytes_ += bytes.size();
}

void AtomicFileSink::SetFinalName(const std::string& file_name) {
  path_ = FolderOf(path_) + "/" + file_name;
}

void AtomicFileSink::Commit() {
  if (fsync(fd_) != 0)
    throw SystemError(path_, "fsync", errno, "the file was not written; an older one is untouched");
  const int close_result = close(std::exchange(fd_, -1));
  if (close_result != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int saved = errno;
    unlink(temporary_.c_str());
    throw SystemError(path_, "rename", saved, "the file was not written; an older one is untouched");
  }
  try {
    SyncFolder(FolderOf(path_));
  } catch (const Error& error) {
    throw Error(ErrorCode::kIo, path_, "is in place but may not survive a power loss: " + error.problem());
  }
}

void StdoutSink::Write(ByteSpan bytes) {
  WriteAll(STDOUT_FILENO, name(), bytes, OnStop::kThrow);
}

const std::string& StdoutSink::name() const {
  static const std::string name = "standard output";
  return name;
}

const std::string& MemorySink::name() const {
  static const std::string name = "memory";
  return name;
}

std::unique_ptr<ByteSink> OpenSink(const std::string& path, bool binary, bool allow_terminal) {
  if (path != "-") return std::make_unique<AtomicFileSink>(path);
  if (binary && !allow_terminal && isatty(STDOUT_FILENO) == 1) {
    throw Error(ErrorCode::kUsage, "standard output", "is a terminal, and the output is binary", "",
                "redirect it, name a file with -o, or force it with -f");
  }
  return std::make_unique<StdoutSink>();
}

void WriteFileAtomically(const std::string& path, ByteSpan content) {
  AtomicFileSink sink(path);
  sink.Write(content);
  sink.Commit();
}

int RemoveStaleTemporaries(const std::string& folder) {
  int removed = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    const size_t mark = name.rfind(kTemporaryMark);
    if (name.empty() || name[0] != '.' || mark == std::string::npos) continue;
    const int pid = std::atoi(name.c_str() + mark + sizeof(kTemporaryMark) - 1);
    const bool alive = pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
    if (pid > 0 && (!alive || pid == getpid()) && std::filesystem::remove(entry.path(), ignored)) ++removed;
  }
  return removed;
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(path, "create", errno);
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
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

}  // namespace trainwright
