/// What is inside a shard's frames: segments, then the planes of the token ids. man/trainwright-shard.5,
/// FRAMES.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright {

inline constexpr uint64_t kMaxFrameContentBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxFrameTableBytes = uint64_t{16} << 20;

/// Bits of an id that do not fit into its 16 low ones: 0, 1, 8 or 16, the fewest that hold every id.
int HighPlaneBits(uint32_t vocab_size);

/// \throws Error{kUsage} when the content would exceed the limits; bad chunks are our own bugs:
/// Error{kInternal}
std::vector<uint8_t> EncodeFrameContent(const ShardSetHeader& header, std::span<const Chunk> chunks,
                                        uint64_t first_chunk);

/// \param object, offset of the frame, for messages
/// \throws Error{kBadInput}
std::vector<Chunk> DecodeFrameContent(const ShardSetHeader& header, ByteSpan content,
                                      uint64_t expected_first_chunk, const std::string& object,
                                      uint64_t offset);

ShardTotals TotalsOf(RecordKind kind, std::span<const Chunk> chunks);

}  // namespace trainwright
