/// Reading at any offset: a file, or memory. Files are read, never mapped, so that a file that is cut or
/// replaced meanwhile is an error and not a signal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// Immutable but for the count, thread-safe.
class RandomReader {
 public:
  virtual ~RandomReader() = default;
  virtual uint64_t size_bytes() const = 0;
  /// For messages: the path.
  virtual const std::string& name() const = 0;

  /// Fills `out` with the bytes from `offset` on.
  /// \throws Error{kBadInput} where the file ends before, and when it was written to since it was opened;
  ///     Error{kIo}
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const;
  std::vector<uint8_t> ReadAt(uint64_t offset, uint64_t size) const;
  /// Bytes that were read so far.
  uint64_t bytes_read() const { return bytes_read_; }

 protected:
  /// Reads up to out.size() > 0 bytes; 0 only at the end.
  virtual size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const = 0;

 private:
  mutable std::atomic<uint64_t> bytes_read_ = 0;
};

/// Whether a path can be read once only: standard input ("-"), a pipe, a socket, a device of characters.
bool IsReadOnce(const std::string& path);
/// \throws Error{kIo}; also when the path is no regular file
std::unique_ptr<RandomReader> OpenRandomReader(const std::string& path);
/// Takes the next `size` bytes, or what is left where that is less, to a temporary file (OpenTemporaryFile)
/// and reads that.
/// \throws Error{kIo}; what `reader` throws
std::unique_ptr<RandomReader> Spool(BufferedReader* reader, uint64_t size);
/// All that a path gives, or standard input for "-", likewise.
/// \throws Error{kIo, kInterrupted, kTerminated}
std::unique_ptr<RandomReader> SpoolAll(const std::string& path);
/// A reader's bytes from the beginning on.
/// \param reader must outlive the source
std::unique_ptr<ByteSource> SourceOf(const RandomReader* reader);
/// Memory that the caller keeps alive.
std::unique_ptr<RandomReader> MemoryRandomReader(ByteSpan bytes, std::string name = "memory");

}  // namespace trainwright
