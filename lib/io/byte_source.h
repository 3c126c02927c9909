/// Where bytes come from: a file, standard input, memory, or a decompressed view of one of these.
///
/// Sources are sequential, not thread-safe, and movable only through their unique_ptr.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/file_state.h"

namespace trainwright {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `size` > 0 bytes into `out`.
  /// \returns the number read; 0 only at the end
  /// \throws Error{kIo} on a failed read, Error{kBadInput} on corrupt compressed data and when a regular file
  ///     was written to since it was opened, Error{kInterrupted, kTerminated} once a stop signal arrived
  virtual size_t Read(uint8_t* out, size_t size) = 0;
  /// For messages: the path, or "standard input".
  virtual const std::string& name() const = 0;
};

/// Opens a path; "-" is standard input, and a notice says when that is a terminal.
/// \throws Error{kIo}
std::unique_ptr<ByteSource> OpenSource(const std::string& path);
/// Likewise, from a byte on.
/// \throws Error{kIo} also where the file cannot be read from the middle
std::unique_ptr<ByteSource> OpenSourceAt(const std::string& path, uint64_t offset);
/// A source over memory that the caller keeps alive.
std::unique_ptr<ByteSource> MemorySource(ByteSpan bytes, std::string name = "memory");
/// Bytes that tell compressed content from other content.
inline constexpr size_t kStartBytes = 16;
/// Whether content that begins so is gzip or zstd.
/// \param start kStartBytes, or fewer when there are no more
bool IsCompressed(ByteSpan start);
/// Wraps a source: gzip and zstd content (any number of members or frames) is recognised by its magic bytes
/// and decompressed as it is read; anything else passes unchanged. A cut stream throws Error{kBadInput}, also
/// one of a name in .gz or .zst that is cut before the end of the magic bytes, or empty.
std::unique_ptr<ByteSource> DecompressIfNeeded(std::unique_ptr<ByteSource> source);

/// Exact-size reads and look-ahead over a source.
class BufferedReader {
 public:
  explicit BufferedReader(std::unique_ptr<ByteSource> source);
  /// Reads exactly `size` bytes unless the source ends first.
  /// \returns the number read
  size_t Read(uint8_t* out, size_t size);
  /// Reads what is at hand, at least one byte, like ByteSource::Read.
  /// \returns the number read; 0 only at the end
  size_t ReadSome(uint8_t* out, size_t size);
  /// Up to `size` bytes ahead without consuming them; fewer only at the end. Valid until the next call.
  ByteSpan Peek(size_t size);
  /// Bytes consumed so far: the offset to name in messages.
  uint64_t position() const { return position_; }
  const std::string& name() const { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t position_ = 0;
};

/// The whole content of a file ("-" is standard input).
/// \throws Error{kIo}, and Error{kBadInput} above `max_bytes`
std::vector<uint8_t> ReadWholeFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);

/// A read-only memory map of a whole file. The file must not be cut while mapped.
class MappedFile {
 public:
  /// \throws Error{kIo}
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ByteSpan bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  /// Reading what another process cut off a file ends this one (lib/io/cut_mapping.h): to be called before a
  /// part is read, for files that are read over a long time.
  /// \throws Error{kBadInput} when the file is shorter than it was
  void ThrowIfCut() const;
  /// To be called after the last read, too, where nothing else says that the content is whole.
  /// \throws Error{kBadInput} when the file was written to since it was mapped
  void ThrowIfWritten() const;
  /// Takes a part of the file, which was read for the last time, out of the process's memory. Reading it
  /// again is possible and brings it back.
  /// \param part of bytes()
  void Release(ByteSpan part) const;

 private:
  std::string path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::optional<FileState> state_;
};

}  // namespace trainwright
