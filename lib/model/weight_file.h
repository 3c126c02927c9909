/// The bytes of a safetensors file: mapped, or restored into memory where it is compressed
/// (trainwright-compressed-checkpoint(5)).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// Immutable.
class WeightFile {
 public:
  /// \throws Error{kIo}; Error{kBadInput} on a compressed file that is damaged, or needs a base
  explicit WeightFile(const std::string& path);
  ByteSpan bytes() const { return mapped_ ? mapped_->bytes() : ByteSpan(restored_.bytes()); }
  const std::string& path() const { return path_; }
  /// As of MappedFile; what a compressed file held stays.
  void Release(ByteSpan part) const {
    if (mapped_) mapped_->Release(part);
  }

 private:
  std::string path_;
  std::optional<MappedFile> mapped_;
  MemorySink restored_;
};

}  // namespace trainwright
