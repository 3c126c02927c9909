#include "lib/io/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/temporary_place.h"

namespace trainwright {

UnnamedFile::UnnamedFile(std::string folder, std::string hint)
    : folder_(std::move(folder)), hint_(std::move(hint)) {
  fd_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string name = folder_ + "/.trainwright-XXXXXX";
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    if (fd_ >= 0) unlink(name.c_str());
  }
  if (fd_ < 0) throw Failure("create a temporary file");
}

UnnamedFile::~UnnamedFile() {
  close(fd_);
}

void UnnamedFile::Append(ByteSpan bytes) {
  WriteAt(size_bytes_, bytes);
}

void UnnamedFile::Reserve(uint64_t size_bytes) {
  while (fallocate(fd_, 0, 0, static_cast<off_t>(size_bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EOPNOTSUPP && errno != EINVAL) {
      throw Failure("room for the temporary file");
    }
    if (ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0) {
      throw Failure("growth of the temporary file");
    }
    break;
  }
  size_bytes_ = size_bytes;
}

void UnnamedFile::WriteAt(uint64_t offset, ByteSpan bytes) {
  TRAINWRIGHT_CHECK(offset <= size_bytes_);
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Failure("write of the temporary file");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
    size_bytes_ = std::max(size_bytes_, offset);
  }
}

void UnnamedFile::ReadAt(uint64_t offset, uint8_t* to, size_t size) const {
  while (size > 0) {
    const ssize_t count = pread(fd_, to, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw SystemError(folder_, "read of the temporary file", errno);
    if (count == 0) throw Error(ErrorCode::kIo, folder_, "the temporary file ends too early");
    offset += static_cast<uint64_t>(count);
    to += count;
    size -= static_cast<size_t>(count);
  }
}

std::string UnnamedFile::path() const {
  return "/proc/self/fd/" + std::to_string(fd_);
}

Error UnnamedFile::Failure(const char* action) const {
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EROFS;
  const Error error = SystemError(folder_, action, errno, hint_);
  // The usual hint for a full disk knows nothing of the choice of another folder.
  return is_full ? Error(error.code(), error.object(), error.problem(), "", hint_) : error;
}

std::unique_ptr<UnnamedFile> OpenTemporaryFile() {
  return std::make_unique<UnnamedFile>(PlaceForTemporaryFiles("/tmp"), "TMPDIR names another folder");
}

}  // namespace trainwright
