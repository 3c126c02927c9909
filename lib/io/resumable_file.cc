#include "lib/io/resumable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "lib/base/error.h"
#include "lib/io/descriptor.h"

namespace trainwright {

std::string ResumableFileSink::PartialPathOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name) + "." + path.substr(name) + ".partial";
}

ResumableFileSink::ResumableFileSink(std::string path, uint64_t kept_bytes)
    : path_(std::move(path)), partial_(PartialPathOf(path_)), size_bytes_(kept_bytes) {
  fd_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(partial_, "create", errno);
  try {
    if (TryToLock(fd_) == LockOutcome::kHeldByAnother) {
      throw Error(ErrorCode::kUsage, path_, "is being written by another process", "",
                  "wait for it to end, or choose another name with -o");
    }
    struct stat info;
    if (fstat(fd_, &info) != 0) throw SystemError(partial_, "stat", errno);
    // Between the opening and the lock its writer may have ended and given it its final name.
    if (!IsNameOf(partial_, fd_)) {
      throw Error(ErrorCode::kUsage, path_, "was being written by another process, which has just ended", "",
                  "begin again");
    }
    if (static_cast<uint64_t>(info.st_size) < kept_bytes) {
      throw Error(ErrorCode::kBadInput, partial_, "is shorter than it was when its writer ended", "",
                  "start over without --resume");
    }
    if (ftruncate(fd_, static_cast<off_t>(kept_bytes)) != 0) throw SystemError(partial_, "truncate", errno);
    if (lseek(fd_, 0, SEEK_END) < 0) throw SystemError(partial_, "seek", errno);
  } catch (...) {
    close(fd_);
    throw;
  }
}

ResumableFileSink::~ResumableFileSink() {
  if (fd_ >= 0) close(fd_);
}

void ResumableFileSink::Write(ByteSpan bytes) {
  WriteAll(fd_, path_, bytes, OnStop::kFinish);
  size_bytes_ += bytes.size();
}

void ResumableFileSink::Overwrite(uint64_t offset, ByteSpan bytes) {
  TRAINWRIGHT_CHECK(offset + bytes.size() <= size_bytes_);
  OverwriteAll(fd_, path_, offset, bytes);
}

void ResumableFileSink::Sync() {
  if (SyncDescriptor(fd_) != 0) throw SystemError(partial_, "fsync", errno);
}

void ResumableFileSink::Commit() {
  Sync();
  if (rename(partial_.c_str(), path_.c_str()) != 0) {
    throw SystemError(path_, "rename", errno, "the file was not written; an older one is untouched");
  }
  close(std::exchange(fd_, -1));
  try {
    SyncFolder(FolderOf(path_));
  } catch (const Error& error) {
    throw Error(ErrorCode::kIo, path_, "is in place but may not survive a power loss: " + error.problem());
  }
}

}  // namespace trainwright
