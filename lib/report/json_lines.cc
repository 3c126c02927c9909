#include "lib/report/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// The size of the file up to and with its last line end.
off_t CompleteSize(int fd, const std::string& path, off_t size) {
  std::array<char, 4096> block;
  off_t end = size;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
    const ssize_t count = pread(fd, block.data(), static_cast<size_t>(end - begin), begin);
    if (count < 0 && errno == EINTR) continue;
    if (count != end - begin) throw SystemError(path, "read", count < 0 ? errno : EIO);
    const size_t line_end = std::string_view(block.data(), static_cast<size_t>(count)).rfind('\n');
    if (line_end != std::string_view::npos) return begin + static_cast<off_t>(line_end) + 1;
    end = begin;
  }
  return 0;
}

}  // namespace

JsonLinesWriter::JsonLinesWriter(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(path, "open", errno);
  try {
    struct stat status = {};
    if (fstat(fd_, &status) != 0) throw SystemError(path, "stat", errno);
    if (!S_ISREG(status.st_mode)) return;
    const off_t complete = CompleteSize(fd_, path, status.st_size);
    repaired_bytes_ = static_cast<uint64_t>(status.st_size - complete);
    if (repaired_bytes_ > 0 && ftruncate(fd_, complete) != 0) throw SystemError(path, "truncate", errno);
  } catch (...) {
    close(fd_);
    throw;
  }
}

JsonLinesWriter::~JsonLinesWriter() {
  close(fd_);
}

void JsonLinesWriter::Write(const nlohmann::ordered_json& object) {
  const std::string line =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  if (!CutTornLine()) throw SystemError(path_, "truncate", errno);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = write(fd_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int failure = errno;
      CutTornLine();  // where this fails, too, the next line tries again
      throw SystemError(path_, "write", failure, failure == ENOSPC ? "free some space" : "");
    }
    rest.remove_prefix(static_cast<size_t>(count));
    torn_bytes_ = rest.empty() ? 0 : line.size() - rest.size();
  }
}

bool JsonLinesWriter::CutTornLine() {
  if (torn_bytes_ == 0) return true;
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return false;
  const off_t complete = std::max<off_t>(0, status.st_size - static_cast<off_t>(torn_bytes_));
  if (S_ISREG(status.st_mode) && ftruncate(fd_, complete) != 0) return false;
  torn_bytes_ = 0;
  return true;
}

void JsonLinesWriter::Sync() {
  if (fdatasync(fd_) != 0 && errno != EINVAL) throw SystemError(path_, "fsync", errno);
}

}  // namespace trainwright
