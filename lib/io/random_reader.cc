#include "lib/io/random_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/io/file_state.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

class FileReader final : public RandomReader {
 public:
  FileReader(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileReader() override { close(fd_); }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// From now on what others write to the file is an error.
  void Watch() { watch_.emplace(fd_, name_); }
  uint64_t size_bytes() const override {
    struct stat info;
    if (fstat(fd_, &info) != 0) throw SystemError(name_, "stat", errno);
    return static_cast<uint64_t>(info.st_size);
  }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    while (true) {
      ThrowIfStopped();
      const ssize_t count = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw SystemError(name_, "read", errno);
      if (watch_) watch_->ThrowIfWritten();
      return static_cast<size_t>(count);
    }
  }

 private:
  int fd_;
  std::string name_;
  std::optional<FileWatch> watch_;
};

class SpooledReader final : public RandomReader {
 public:
  SpooledReader(std::unique_ptr<UnnamedFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return file_->size_bytes(); }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    ThrowIfStopped();
    const size_t count = std::min<uint64_t>(out.size(), size_bytes() - std::min(offset, size_bytes()));
    file_->ReadAt(offset, out.data(), count);
    return count;
  }

 private:
  std::unique_ptr<UnnamedFile> file_;
  std::string name_;
};

class MemoryReader final : public RandomReader {
 public:
  MemoryReader(ByteSpan bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    const ByteSpan left = bytes_.subspan(std::min<uint64_t>(offset, bytes_.size()));
    const size_t count = std::min(out.size(), left.size());
    std::copy_n(left.begin(), count, out.begin());
    return count;
  }

 private:
  ByteSpan bytes_;
  std::string name_;
};

class SequentialSource final : public ByteSource {
 public:
  explicit SequentialSource(const RandomReader* reader) : reader_(reader), size_(reader->size_bytes()) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = std::min<uint64_t>(size, size_ - position_);
    reader_->ReadAt(position_, std::span(out, count));
    position_ += count;
    return count;
  }
  const std::string& name() const override { return reader_->name(); }

 private:
  const RandomReader* reader_;
  uint64_t size_, position_ = 0;
};

}  // namespace

void RandomReader::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const size_t count = ReadSome(offset, out);
    if (count == 0)
      throw Error(ErrorCode::kBadInput, name(), "ends too early", "byte " + std::to_string(offset));
    bytes_read_ += count;
    offset += count;
    out = out.subspan(count);
  }
}

std::vector<uint8_t> RandomReader::ReadAt(uint64_t offset, uint64_t size) const {
  const uint64_t file_bytes = size_bytes();
  if (offset > file_bytes || size > file_bytes - offset)
    throw Error(ErrorCode::kBadInput, name(), "ends too early", "byte " + std::to_string(file_bytes));
  std::vector<uint8_t> bytes(size);
  ReadAt(offset, std::span<uint8_t>(bytes));
  return bytes;
}

bool IsReadOnce(const std::string& path) {
  std::error_code none;  // a file that is missing is told of where it is opened
  const std::filesystem::file_status status = std::filesystem::status(path, none);
  return path == "-" || std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status) ||
         std::filesystem::is_socket(status);
}

std::unique_ptr<RandomReader> OpenRandomReader(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw SystemError(path, "open", errno);
  auto reader = std::make_unique<FileReader>(fd, path);
  struct stat info;
  if (fstat(fd, &info) != 0) throw SystemError(path, "stat", errno);
  if (S_ISDIR(info.st_mode)) throw SystemError(path, "open", EISDIR);
  if (!S_ISREG(info.st_mode))
    throw SystemError(path, "seek", ESPIPE, "give a regular file, or - for standard input");
  reader->Watch();
  return reader;
}

std::unique_ptr<RandomReader> Spool(BufferedReader* reader, uint64_t size) {
  std::unique_ptr<UnnamedFile> file = OpenTemporaryFile();
  std::vector<uint8_t> piece(std::min<uint64_t>(size, 1 << 20));
  while (file->size_bytes() < size) {
    const uint64_t left = size - file->size_bytes();
    const size_t count = reader->ReadSome(piece.data(), std::min<uint64_t>(left, piece.size()));
    if (count == 0) break;
    file->Append(ByteSpan(piece).first(count));
  }
  return std::make_unique<SpooledReader>(std::move(file), reader->name());
}

std::unique_ptr<RandomReader> SpoolAll(const std::string& path) {
  BufferedReader reader(OpenSource(path));
  return Spool(&reader, UINT64_MAX);
}

std::unique_ptr<ByteSource> SourceOf(const RandomReader* reader) {
  return std::make_unique<SequentialSource>(reader);
}

std::unique_ptr<RandomReader> MemoryRandomReader(ByteSpan bytes, std::string name) {
  return std::make_unique<MemoryReader>(bytes, std::move(name));
}

}  // namespace trainwright
