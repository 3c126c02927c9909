#include "lib/io/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/io/cut_mapping.h"

namespace trainwright {
namespace {

enum class OnStop { kFinish, kThrow };

class FileSource final : public ByteSource {
 public:
  FileSource(int fd, std::string name, bool owned, OnStop on_stop)
      : fd_(fd), name_(std::move(name)), owned_(owned), on_stop_(on_stop), watch_(fd_, name_) {}
  ~FileSource() override {
    if (owned_) close(fd_);
  }
  size_t Read(uint8_t* out, size_t size) override {
    while (!ended_) {
      if (on_stop_ == OnStop::kThrow) ThrowIfStopped();
      const ssize_t count = read(fd_, out, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw SystemError(name_, "read", errno);
      watch_.ThrowIfWritten();
      ended_ = count == 0;
      return static_cast<size_t>(count);
    }
    return 0;
  }
  const std::string& name() const override { return name_; }

 private:
  int fd_;
  std::string name_;
  bool owned_;
  OnStop on_stop_;
  bool ended_ = false;  // a terminal would be read on behind its end
  FileWatch watch_;
};

class SpanSource final : public ByteSource {
 public:
  SpanSource(ByteSpan bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = std::min(size, bytes_.size());
    std::copy_n(bytes_.begin(), count, out);
    bytes_ = bytes_.subspan(count);
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  ByteSpan bytes_;
  std::string name_;
};

void SayIfTerminal(int fd, const std::string& name) {
  if (isatty(fd) == 1) LogInfo("reading " + name + " from the terminal; Ctrl-D on an empty line ends it");
}

int OpenForReading(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR) {  // a named pipe that nobody writes to yet
    ThrowIfStopped();
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0) throw SystemError(path, "open", errno);
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(fd);
    throw SystemError(path, "open", EISDIR);
  }
  SayIfTerminal(fd, path);
  return fd;
}

}  // namespace

std::unique_ptr<ByteSource> OpenSource(const std::string& path) {
  if (path == "-") {
    SayIfTerminal(STDIN_FILENO, "standard input");
    return std::make_unique<FileSource>(STDIN_FILENO, "standard input", false, OnStop::kThrow);
  }
  return std::make_unique<FileSource>(OpenForReading(path), path, true, OnStop::kThrow);
}

std::unique_ptr<ByteSource> OpenSourceAt(const std::string& path, uint64_t offset) {
  const int fd = OpenForReading(path);
  auto source = std::make_unique<FileSource>(fd, path, true, OnStop::kThrow);
  if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) throw SystemError(path, "seek", errno);
  return source;
}

std::unique_ptr<ByteSource> MemorySource(ByteSpan bytes, std::string name) {
  return std::make_unique<SpanSource>(bytes, std::move(name));
}

BufferedReader::BufferedReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(1 << 18) {}

size_t BufferedReader::Read(uint8_t* out, size_t size) {
  size_t done = std::min(size, end_ - begin_);
  std::copy_n(buffer_.begin() + static_cast<ptrdiff_t>(begin_), done, out);
  begin_ += done;
  while (done < size) {
    const size_t count = source_->Read(out + done, size - done);
    if (count == 0) break;
    done += count;
  }
  position_ += done;
  return done;
}

size_t BufferedReader::ReadSome(uint8_t* out, size_t size) {
  if (begin_ < end_) return Read(out, std::min(size, end_ - begin_));
  const size_t count = source_->Read(out, size);
  position_ += count;
  return count;
}

ByteSpan BufferedReader::Peek(size_t size) {
  if (end_ - begin_ < size) {
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < size) buffer_.resize(size);
    while (end_ < size) {
      const size_t count = source_->Read(buffer_.data() + end_, buffer_.size() - end_);
      if (count == 0) break;
      end_ += count;
    }
  }
  return {buffer_.data() + begin_, std::min(size, end_ - begin_)};
}

std::vector<uint8_t> ReadWholeFile(const std::string& path, uint64_t max_bytes) {
  // Small files are read to the end even after a stop signal: the last checkpoint may need them.
  const std::unique_ptr<ByteSource> source =
      path == "-" ? OpenSource(path)
                  : std::make_unique<FileSource>(OpenForReading(path), path, true, OnStop::kFinish);
  std::vector<uint8_t> content;
  size_t size = 0;
  while (true) {
    if (content.size() - size < (1 << 16)) content.resize(std::max<size_t>(content.size() * 2, 1 << 17));
    const size_t count = source->Read(content.data() + size, content.size() - size);
    if (count == 0) break;
    size += count;
    if (size > max_bytes) {
      throw Error(ErrorCode::kBadInput, source->name(),
                  "is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
  content.resize(size);
  return content;
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int fd = OpenForReading(path);
  state_ = SettledStateOf(fd, path);
  size_ = state_ ? state_->size_bytes : 0;
  if (size_ > 0) {
    void* data = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      const int saved = errno;
      close(fd);
      throw SystemError(path, "mmap", saved);
    }
    data_ = static_cast<const uint8_t*>(data);
  }
  close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::ThrowIfCut() const {
  struct stat info;
  // What was mapped stays whole when another file takes the path.
  if (!state_ || stat(path_.c_str(), &info) != 0) return;
  if (info.st_dev != state_->device || info.st_ino != state_->inode) return;
  if (static_cast<size_t>(info.st_size) >= size_) return;
  throw Error(ErrorCode::kBadInput, path_,
              "was cut from " + std::to_string(size_) + " to " + std::to_string(info.st_size) +
                  " bytes while it was read",
              "", kCutMappingHint);
}

void MappedFile::ThrowIfWritten() const {
  if (state_) ThrowIfWrittenSince(*state_, path_);
}

void MappedFile::Release(ByteSpan part) const {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page_bytes - 1) / page_bytes * page_bytes,
             end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page_bytes * page_bytes;
  // Advice: where it is not taken, the pages stay until the file is unmapped.
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      state_(other.state_) {}

}  // namespace trainwright
