/// Reading zip archives, as .npz files and PyTorch's .pt files are: entries stored or deflated, zip64, no
/// encryption, one disk. \source PKWARE APPNOTE 6.3.10
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_source.h"

namespace trainwright {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc32 = 0;
  uint64_t stored_bytes = 0, content_bytes = 0;
  uint64_t offset = 0;  ///< of the stored bytes in the archive
};

/// Const methods are thread-safe.
class ZipArchive {
 public:
  /// Reads the directory at the end.
  /// \param bytes outlives the archive
  /// \param name for messages
  /// \throws Error{kBadInput}
  ZipArchive(ByteSpan bytes, std::string name);
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// nullptr when there is none.
  const ZipEntry* Find(const std::string& entry_name) const;
  /// The content, in constant memory; the end checks size and CRC-32. Outlived by the archive.
  std::unique_ptr<ByteSource> Open(const ZipEntry& entry) const;
  /// The content of an entry that is stored as it is, checked.
  /// \throws Error{kBadInput} on a deflated one
  ByteSpan Stored(const ZipEntry& entry) const;
  const std::string& name() const { return name_; }

 private:
  ByteSpan bytes_;
  std::string name_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, size_t> place_of_;  // in entries_; of a name that comes twice the first
};

}  // namespace trainwright
