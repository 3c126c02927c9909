/// The bytes of a tensor that is encoded: in memory, or in a file that is read piece by piece, so that a
/// tensor may be larger than memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/random_reader.h"

namespace trainwright {

/// Immutable, thread-safe. What it stands for must outlive it.
class TensorContent {
 public:
  TensorContent() = default;
  TensorContent(ByteSpan bytes) : bytes_(bytes), size_bytes_(bytes.size()) {}           // NOLINT: is one
  TensorContent(const std::vector<uint8_t>& bytes) : TensorContent(ByteSpan(bytes)) {}  // NOLINT
  /// `size_bytes` of the file from `offset` on.
  static TensorContent InFile(const RandomReader* file, uint64_t offset, uint64_t size_bytes);

  uint64_t size() const { return size_bytes_; }
  /// \returns what is there; valid until `scratch` changes, which has it where it is not in memory
  /// \throws what the file throws
  ByteSpan Read(uint64_t offset, uint64_t size, std::vector<uint8_t>* scratch) const;
  bool in_memory() const { return file_ == nullptr; }

 private:
  ByteSpan bytes_;
  const RandomReader* file_ = nullptr;
  uint64_t offset_ = 0, size_bytes_ = 0;
};

/// The bytes of one tensor, with what they lie in where nothing else keeps that.
struct TensorBytes {
  TensorContent view;
  std::vector<uint8_t> owned;
  std::unique_ptr<const RandomReader> file;

  static TensorBytes Own(std::vector<uint8_t> bytes);
  /// A whole file.
  static TensorBytes Own(std::unique_ptr<const RandomReader> file);
};

/// Tensors that are larger are not held where they can be read piece by piece.
inline constexpr uint64_t kMostHeldBytes = uint64_t{4} << 20;

/// XXH3-64 of all of it.
/// \throws what the file throws
uint64_t HashOf(const TensorContent& content);

/// Reads a content in small steps from its beginning towards its end, of a file in large pieces. For one
/// thread.
class ContentReader {
 public:
  /// \param content must outlive this
  /// \param end up to which all will be read; nothing behind it is read ahead
  ContentReader(const TensorContent& content, uint64_t end) : content_(content), end_(end) {}
  /// Valid until the next call.
  /// \throws what the file throws
  ByteSpan Read(uint64_t offset, uint64_t size);

 private:
  const TensorContent& content_;
  const uint64_t end_;
  uint64_t begin_ = 0;
  std::vector<uint8_t> piece_;
};

}  // namespace trainwright
