/// The private frames of a shard as bytes: header, index and seek table. man/trainwright-shard.5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/formats/file_header.h"
#include "lib/formats/shard.h"

namespace trainwright {

extern const FileHeaderFormat kShardFormat;

struct ShardHeader {
  ShardSetHeader set;
  uint32_t shard_number = 0;
  uint64_t first_chunk = 0;
};

/// The whole skippable frame; the tokenizer's model goes into shard 0 only.
std::vector<uint8_t> EncodeShardHeader(const ShardHeader& header);
/// The size of the skippable frame whose first bytes are `head` (fewer than 24 when the file ends).
/// \throws Error{kBadInput}
uint64_t ShardHeaderBytes(ByteSpan head, const std::string& object, uint64_t offset);
/// \param frame the whole skippable frame
/// \throws Error{kBadInput}
ShardHeader DecodeShardHeader(ByteSpan frame, const std::string& object, uint64_t offset);
/// This many bytes of a header say how long it is.
inline constexpr size_t kShardHeaderPrefixBytes = 8 + kFileHeaderPrefixBytes;

/// Whether two headers belong to one set; only shard 0 has the tokenizer's model.
bool SameSet(const ShardSetHeader& left, const ShardSetHeader& right);

struct ShardIndex {
  bool last = false;
  uint32_t shard_number = 0;
  uint64_t first_chunk = 0;
  uint64_t header_bytes = 0;  ///< of the header frame
  uint64_t header_hash = 0;   ///< XXH3-64 of the whole header frame
  ShardTotals totals;
  Sha256Digest content_sha256{};
  std::vector<FrameEntry> frames;
};

/// Size of the index frame.
uint64_t IndexBytes(uint64_t frames);
std::vector<uint8_t> EncodeIndex(const ShardIndex& index);
/// Checks all that the index alone can show: its hash, and that frames follow each other without a gap.
/// \param frame the whole skippable frame
/// \throws Error{kBadInput}
ShardIndex DecodeIndex(ByteSpan frame, const std::string& object, uint64_t offset);

/// The seek table of zstd's contrib/seekable_format, without checksums: a function of sizes alone.
std::vector<uint8_t> EncodeSeekTable(const ShardIndex& index);
/// Size of the seek table frame.
uint64_t SeekTableBytes(uint64_t frames);
/// Size of the whole shard.
uint64_t ShardBytes(const ShardIndex& index);

/// Identity of a shard's content, the same for every compression level.
Sha256Digest ContentSha256(const ShardSetHeader& header, const std::vector<FrameEntry>& frames);

/// Where the index of the last shard in `bytes` is.
struct ShardPlaces {
  uint64_t shard_bytes = 0;
  uint64_t index_offset = 0, index_bytes = 0;  ///< offset from the start of the shard
};
/// Follows the seek table's footer and the index's trailer from the end of `bytes`.
/// \throws Error{kBadInput}
ShardPlaces LocateLastShard(ByteSpan bytes, const std::string& object);

}  // namespace trainwright
