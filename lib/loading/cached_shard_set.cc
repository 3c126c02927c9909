#include "lib/loading/cached_shard_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/descriptor.h"
#include "lib/loading/copy_retirement.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

dev_t FileSystemOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) throw SystemError(path, "open", errno);
  return info.st_dev;
}

/// The files whose bytes, one after the other, are the set's as a file.
std::vector<std::string> FilesOf(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  const std::string manifest = path + "/" + kManifestName;
  std::vector<std::string> files;
  for (const ManifestEntry& entry :
       DecodeManifest(std::string(AsText(ReadWholeFile(manifest, kMaxManifestBytes))), manifest)) {
    files.push_back(path + "/" + entry.file_name);
  }
  return files;
}

/// Has the copy to itself until it is destroyed. Where locks do not work, nobody waits, and the last of
/// several equal copies stays.
class CopyLock {
 public:
  /// The folder itself is locked: users who share it need not share a file in it.
  explicit CopyLock(const std::string& folder) {
    fd_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) throw SystemError(folder, "open", errno);
    try {
      for (bool said = false; TryToLock(fd_) == LockOutcome::kHeldByAnother;) {
        if (!std::exchange(said, true))
          LogInfo("waiting for another process that copies shards to " + folder);
        ThrowIfStopped();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    } catch (...) {
      close(fd_);
      throw;
    }
  }
  ~CopyLock() { close(fd_); }
  CopyLock(const CopyLock&) = delete;
  CopyLock& operator=(const CopyLock&) = delete;

 private:
  int fd_;
};

/// Has room for some more files in a folder, as far as copies there can make it.
void MakeRoom(const std::string& folder, const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) bytes += fs::file_size(file);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  RetireCopies(folder, bytes, error ? bytes : space.available);
}

void CopyTo(const std::string& path, const std::vector<std::string>& files) {
  const std::string folder = fs::path(path).parent_path();
  RemoveStaleTemporaries(folder, IsCopyName);
  MakeRoom(folder, files);
  AtomicFileSink sink(path);
  std::vector<uint8_t> buffer(kCopyBytes);
  for (const std::string& file : files) {
    const std::unique_ptr<ByteSource> source = OpenSource(file);
    while (const size_t count = source->Read(buffer.data(), buffer.size())) {
      ThrowIfStopped();
      sink.Write({buffer.data(), count});
    }
  }
  sink.Commit();
  LogInfo("copied " + FormatBytes(sink.size_bytes()) + " of shards to " + path);
}

void MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    throw Error(ErrorCode::kIo, folder, "is not a folder, and cannot be made one", "", "see --cache-dir");
  }
}

/// \returns null where there is no copy, or a damaged one, which is to be made again
std::unique_ptr<ShardSet> OpenCopy(const std::string& copy, const ShardSet& original) {
  if (!fs::exists(copy)) return nullptr;
  try {
    std::unique_ptr<ShardSet> opened = ShardSet::OpenCopy(copy, original);
    if (opened->content_sha256() == original.content_sha256()) {
      KeepInUse(copy);
      return opened;
    }
  } catch (const Error& error) {
    if (!fs::exists(copy)) return nullptr;  // it made way for another in this moment
    if (error.code() != ErrorCode::kBadInput) throw;
  }
  LogWarning(copy + " is damaged: it is copied again");
  return nullptr;
}

}  // namespace

std::unique_ptr<ShardSet> OpenCachedShardSet(const std::string& path, const std::string& folder,
                                             bool copies_always) {
  std::unique_ptr<ShardSet> set = ShardSet::Open(path);
  MakeFolder(folder);
  const bool is_there = FileSystemOf(path) == FileSystemOf(folder);
  if (is_there && !copies_always) return set;
  const std::string copy = folder + "/" + CopyName(HexEncode(set->content_sha256()));
  if (std::unique_ptr<ShardSet> copied = OpenCopy(copy, *set)) return copied;
  const CopyLock lock(folder);
  if (std::unique_ptr<ShardSet> copied = OpenCopy(copy, *set)) return copied;
  CopyTo(copy, FilesOf(path));
  KeepInUse(copy);
  return ShardSet::OpenCopy(copy, *set);
}

}  // namespace trainwright
