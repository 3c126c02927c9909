#include "lib/data/spooled_shard_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/formats/shard.h"

namespace trainwright {
namespace {

constexpr char kRoomHint[] = "choose a folder with room by --cache-dir, or write the shards to a file first";

/// A file without a name.
class UnnamedFile {
 public:
  explicit UnnamedFile(const std::string& folder) : folder_(folder) {
    fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
      std::string name = folder + "/.trainwright-spool-XXXXXX";
      fd_ = mkostemp(name.data(), O_CLOEXEC);
      if (fd_ >= 0) unlink(name.c_str());
    }
    if (fd_ < 0) throw SystemError(folder, "create a temporary file", errno, kRoomHint);
  }
  ~UnnamedFile() { close(fd_); }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  void Write(const uint8_t* data, size_t size) {
    while (size > 0) {
      const ssize_t count = write(fd_, data, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw SystemError(folder_, "write of the temporary file", errno, kRoomHint);
      data += count;
      size -= static_cast<size_t>(count);
      size_bytes_ += static_cast<uint64_t>(count);
    }
  }
  /// A path by which this process can open the file.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::string folder_;
  int fd_ = -1;
  uint64_t size_bytes_ = 0;
};

/// Passes a source through and keeps a copy of every byte.
class CopyingSource final : public ByteSource {
 public:
  CopyingSource(std::unique_ptr<ByteSource> source, UnnamedFile* copy)
      : source_(std::move(source)), copy_(copy) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = source_->Read(out, size);
    copy_->Write(out, count);
    return count;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  UnnamedFile* copy_;
};

}  // namespace

std::unique_ptr<ShardSet> SpoolShardSet(std::unique_ptr<ByteSource> source, const std::string& folder) {
  UnnamedFile file(folder);
  ShardStreamReader reader(std::make_unique<CopyingSource>(std::move(source), &file));
  Chunk chunk;
  while (reader.Next(&chunk)) {
  }
  LogDebug("kept " + FormatBytes(file.size_bytes()) + " of shards in an unnamed file in " + folder);
  return ShardSet::Open(file.path());
}

}  // namespace trainwright
