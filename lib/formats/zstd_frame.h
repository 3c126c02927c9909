/// Single zstd frames as shards hold them: content size and content checksum always on, no dictionary.
/// \source RFC 8878 (the frame and block headers that ReadZstdFrame walks)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_source.h"

namespace trainwright {

inline constexpr uint32_t kZstdFrameMagic = 0xFD2FB528;
/// Magic numbers of the skippable frames of shards: header and index are ours, the seek table's is zstd's.
inline constexpr uint32_t kHeaderFrameMagic = 0x184D2A50;
inline constexpr uint32_t kIndexFrameMagic = 0x184D2A51;
inline constexpr uint32_t kSeekTableFrameMagic = 0x184D2A5E;
/// Magic number and size of the data that follow.
inline constexpr size_t kSkippableHeaderBytes = 8;

/// Same content, level and zstd version: same bytes. Thread-safe.
/// \param level 1..19
/// \param min_match the shortest match to look for, 3..7; 0: as in the level
std::vector<uint8_t> CompressZstdFrame(ByteSpan content, int level, int min_match = 0);

/// Whether the checksum in the frame is looked at. It need not be by who compares hashes of frame and
/// content.
enum class ContentChecksum { kVerify, kIgnore };

/// The content of exactly one frame. Thread-safe.
/// \param max_content_bytes larger frames are refused before memory is spent on them
/// \throws Error{kBadInput} with `offset` in `object`
std::vector<uint8_t> DecompressZstdFrame(ByteSpan frame, uint64_t max_content_bytes,
                                         const std::string& object, uint64_t offset,
                                         ContentChecksum checksum = ContentChecksum::kVerify);

/// Reads one frame's compressed bytes, not a byte more; its content stays unchecked.
/// \throws Error{kBadInput}
std::vector<uint8_t> ReadZstdFrame(BufferedReader* reader, uint64_t max_content_bytes);

}  // namespace trainwright
