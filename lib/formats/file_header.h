/// The header that token streams and shards share: version, flags, the tokenizer, provenance, and a few bytes
/// of each format's own. Layout: man/trainwright-token-stream.5, section HEADER.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/formats/record_kind.h"
#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

inline constexpr uint64_t kMaxTokenizerModelBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxProvenanceBytes = uint64_t{16} << 20;

/// What differs between the formats.
struct FileHeaderFormat {
  std::array<uint8_t, 8> magic;
  const char* name;             ///< for messages: "token stream"
  uint16_t settings_bytes;      ///< size of the format's own fields in this version
  uint64_t required_flags = 0;  ///< those that this version of the format knows
  const char* hint = "";        ///< where the magic number is another: what makes such files
};

struct FileHeader {
  TokenizerIdentity tokenizer;
  RecordKind record_kind = RecordKind::kLm;
  std::string provenance_json;
  std::vector<uint8_t> settings;  ///< the format's own fields
  /// What a reader must understand to read the file; beyond the format's: refused.
  uint64_t required_flags = 0;
  std::vector<uint8_t> extension;  ///< of the required flags; empty without any
};

/// Bytes on disk of one token id: 2 up to 65,536 ids, else 4.
inline int TokenWidth(uint32_t vocab_size) {
  return vocab_size <= 65536 ? 2 : 4;
}

std::vector<uint8_t> EncodeFileHeader(const FileHeaderFormat& format, const FileHeader& header);

/// This many bytes say how long the header is.
inline constexpr size_t kFileHeaderPrefixBytes = 16;

/// The size of the header that starts with `prefix`, which may be shorter than kFileHeaderPrefixBytes when
/// the file is.
/// \param offset of the header in `object`, for messages
/// \throws Error{kBadInput}: another format, another major version, implausible size, cut
uint64_t FileHeaderSize(const FileHeaderFormat& format, ByteSpan prefix, const std::string& object,
                        uint64_t offset);

/// \param bytes the whole header, FileHeaderSize() bytes
/// \throws Error{kBadInput}: corrupt, unknown required flags, a model that is not what its hash says
FileHeader DecodeFileHeader(const FileHeaderFormat& format, ByteSpan bytes, const std::string& object,
                            uint64_t offset);

}  // namespace trainwright
