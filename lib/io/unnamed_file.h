/// A file without a name, so that it vanishes with the process however that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace trainwright {

/// Reading is thread-safe while nobody writes.
class UnnamedFile {
 public:
  /// \param folder where it lies
  /// \param hint of its errors, also where the folder has no room: what to do about the folder
  /// \throws Error{kIo}
  UnnamedFile(std::string folder, std::string hint);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  /// Writes after what was appended before.
  /// \throws Error{kIo}
  void Append(ByteSpan bytes);
  /// Has the file system keep room for this many bytes, where it can, of zeros at first.
  /// \throws Error{kIo}
  void Reserve(uint64_t size_bytes);
  /// Overwrites what lies from `offset` on, within or at the end of the file.
  /// \throws Error{kIo}
  void WriteAt(uint64_t offset, ByteSpan bytes);
  /// Fills `to` from `offset`.
  /// \throws Error{kIo} also where the file ends before
  void ReadAt(uint64_t offset, uint8_t* to, size_t size) const;
  /// Forgets what lies from `size_bytes` on: the next Append writes there. The room stays the file's.
  void Shorten(uint64_t size_bytes) { size_bytes_ = size_bytes; }
  uint64_t size_bytes() const { return size_bytes_; }
  /// A path by which this process can open the file.
  std::string path() const;

 private:
  /// By errno, of a call that makes the file larger.
  Error Failure(const char* action) const;

  std::string folder_, hint_;
  int fd_ = -1;
  uint64_t size_bytes_ = 0;
};

/// A file in TMPDIR, else /tmp.
/// \throws Error{kIo}
std::unique_ptr<UnnamedFile> OpenTemporaryFile();

}  // namespace trainwright
