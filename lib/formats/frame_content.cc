#include "lib/formats/frame_content.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/contrastive_order.h"

namespace trainwright {
namespace {

constexpr uint32_t kFrameTag = 0x4D524654;  // "TFRM"
constexpr size_t kTableFixedBytes = 24;
constexpr uint8_t kLmFlags = kSegmentStartsMidDocument | kSegmentEndsMidDocument | kSegmentPadding;
constexpr uint8_t kSftFlags = kLmFlags | kSegmentNoLoss | kSegmentContinuesPrevious | kSegmentNextNoLoss;
constexpr uint8_t kRoleFlags = kSegmentPositive | kSegmentNegative;
constexpr uint8_t kContrastiveFlags =
    kSegmentPadding | kSegmentNoLoss | kSegmentContinuesPrevious | kRoleFlags;

uint8_t KnownFlags(RecordKind kind) {
  if (kind == RecordKind::kSft) return kSftFlags;
  return kind == RecordKind::kContrastive ? kContrastiveFlags : kLmFlags;
}

/// Why a segment of a masked record does not fit behind `previous` (nullptr: it is the chunk's first).
const char* FaultOfMasked(const Segment& segment, const Segment* previous) {
  const auto has = [](const Segment& of, uint8_t flag) { return (of.flags & flag) != 0; };
  if (has(segment, kSegmentNextNoLoss) && !has(segment, kSegmentEndsMidDocument)) {
    return "a segment speaks of a next token that it does not have";
  }
  if (!has(segment, kSegmentContinuesPrevious)) return nullptr;
  if (previous == nullptr || previous->tokens == 0 || has(*previous, kSegmentEndsMidDocument) ||
      has(segment, kSegmentStartsMidDocument) ||
      has(segment, kSegmentNoLoss) == has(*previous, kSegmentNoLoss)) {
    return "a segment does not continue the one before";
  }
  return nullptr;
}

/// Why the segments of contrastive records do not make whole records.
const char* FaultOfContrastive(const Chunk& chunk) {
  ContrastiveOrder order;
  for (const Segment& segment : chunk.segments) {
    if ((segment.flags & kSegmentPadding) != 0) continue;
    if ((segment.flags & kRoleFlags) == kRoleFlags) return "a segment is a positive and a negative";
    const bool begins_text = (segment.flags & kSegmentContinuesPrevious) == 0;
    if (begins_text && RoleOf(segment) == TextRole::kQuery && order.in_record()) {
      if (const char* fault = order.EndRecord()) return fault;
    }
    const bool pooled = (segment.flags & kSegmentNoLoss) == 0;
    if (const char* fault = order.Add(begins_text, RoleOf(segment), pooled, segment.tokens)) return fault;
  }
  return order.in_record() ? order.EndRecord() : nullptr;
}

/// Why a chunk breaks the rules of the format; nullptr when it keeps them.
const char* FaultOf(const ShardSetHeader& header, const Chunk& chunk) {
  if (chunk.segments.empty()) return "a chunk has no segments";
  const uint8_t known_flags = KnownFlags(header.record_kind);
  uint64_t sum = 0;
  const Segment* previous = nullptr;
  for (const Segment& segment : chunk.segments) {
    const bool ends_mid = (segment.flags & kSegmentEndsMidDocument) != 0;
    const bool padding = (segment.flags & kSegmentPadding) != 0;
    if ((segment.flags & ~known_flags) != 0) return "a segment has unknown flags";
    if (segment.tokens == 0 && segment.flags != 0) return "a segment without tokens is not a whole document";
    if (ends_mid ? segment.next_token >= header.tokenizer.vocab_size : segment.next_token != kNoId) {
      return "the next token of a segment is wrong";
    }
    if (padding && (segment.flags != kSegmentPadding || segment.source_bytes != 0 ||
                    &segment != &chunk.segments.back())) {
      return "padding is not the plain last segment";
    }
    if (const char* fault = FaultOfMasked(segment, previous)) return fault;
    previous = &segment;
    sum += segment.tokens;
  }
  if (header.record_kind == RecordKind::kContrastive) {
    if (const char* fault = FaultOfContrastive(chunk)) return fault;
  }
  if (sum != chunk.tokens.size()) return "segments and tokens do not add up";
  if (header.mode == PackMode::kNone ? sum > header.chunk_tokens : sum != header.chunk_tokens) {
    return "a chunk has the wrong number of tokens";
  }
  if ((chunk.segments.back().flags & kSegmentPadding) != 0) {
    const auto padding = std::span(chunk.tokens).last(chunk.segments.back().tokens);
    if (std::any_of(padding.begin(), padding.end(), [](uint32_t token) { return token != 0; })) {
      return "padding is not zero";
    }
  }
  return nullptr;
}

size_t HighPlaneBytes(size_t tokens, int bits) {
  return (tokens * static_cast<size_t>(bits) + 7) / 8;
}

/// Lays the tokens of all chunks end to end: 16 low bits each, then the high bits.
void AppendPlanes(std::span<const Chunk> chunks, size_t tokens, int high_bits, std::vector<uint8_t>* out) {
  const size_t start = out->size();
  out->resize(start + tokens * 2 + HighPlaneBytes(tokens, high_bits));
  uint8_t* low = out->data() + start;
  uint8_t* const high = low + tokens * 2;
  size_t position = 0;
  for (const Chunk& chunk : chunks) {
    for (const uint32_t token : chunk.tokens) {
      const auto low_bits = static_cast<uint16_t>(token);
      std::memcpy(low, &low_bits, 2);
      low += 2;
    }
    if (high_bits == 1) {
      for (const uint32_t token : chunk.tokens) {
        high[position / 8] |= static_cast<uint8_t>((token >> 16) << (position % 8));
        ++position;
      }
    } else if (high_bits == 8) {
      for (const uint32_t token : chunk.tokens) high[position++] = static_cast<uint8_t>(token >> 16);
    } else if (high_bits == 16) {
      for (const uint32_t token : chunk.tokens) {
        const auto top = static_cast<uint16_t>(token >> 16);
        std::memcpy(high + 2 * position++, &top, 2);
      }
    }
  }
}

/// The inverse, for `count` tokens from number `first` on.
void DecodePlanes(const uint8_t* low, const uint8_t* high, int high_bits, size_t first, size_t count,
                  std::vector<uint32_t>* tokens) {
  tokens->resize(count);
  uint32_t* out = tokens->data();
  for (size_t i = 0; i < count; ++i) {
    uint16_t low_bits;
    std::memcpy(&low_bits, low + 2 * (first + i), 2);
    out[i] = low_bits;
  }
  if (high_bits == 1) {
    for (size_t i = 0; i < count; ++i) {
      const size_t position = first + i;
      out[i] |= static_cast<uint32_t>(high[position / 8] >> (position % 8) & 1) << 16;
    }
  } else if (high_bits == 8) {
    for (size_t i = 0; i < count; ++i) out[i] |= static_cast<uint32_t>(high[first + i]) << 16;
  } else if (high_bits == 16) {
    for (size_t i = 0; i < count; ++i) {
      uint16_t top;
      std::memcpy(&top, high + 2 * (first + i), 2);
      out[i] |= static_cast<uint32_t>(top) << 16;
    }
  }
}

uint32_t MaxOf(std::span<const uint32_t> tokens) {
  uint32_t max = 0;
  for (const uint32_t token : tokens) max = std::max(max, token);
  return max;
}

void AppendSegments(const Chunk& chunk, std::vector<uint8_t>* out) {
  AppendVarint(out, chunk.segments.size());
  for (const Segment& segment : chunk.segments) {
    AppendVarint(out, segment.tokens);
    out->push_back(segment.flags);
    if ((segment.flags & kSegmentEndsMidDocument) != 0) AppendVarint(out, segment.next_token);
    AppendVarint(out, segment.source_bytes);
  }
}

/// \returns false when a number is out of range; running out of table shows in table->failed()
bool ReadSegments(ByteParser* table, std::vector<Segment>* segments) {
  const uint64_t count = table->ReadVarint();
  for (uint64_t i = 0; i < count && !table->failed(); ++i) {
    Segment segment;
    const uint64_t tokens = table->ReadVarint();
    segment.flags = table->Read<uint8_t>();
    const uint64_t next_token = (segment.flags & kSegmentEndsMidDocument) != 0 ? table->ReadVarint() : kNoId;
    segment.source_bytes = table->ReadVarint();
    if (tokens > UINT32_MAX || next_token > UINT32_MAX) return false;
    segment.tokens = static_cast<uint32_t>(tokens);
    segment.next_token = static_cast<uint32_t>(next_token);
    segments->push_back(segment);
  }
  return true;
}

}  // namespace

int HighPlaneBits(uint32_t vocab_size) {
  if (vocab_size <= 1u << 16) return 0;
  if (vocab_size <= 1u << 17) return 1;
  return vocab_size <= 1u << 24 ? 8 : 16;
}

std::vector<uint8_t> EncodeFrameContent(const ShardSetHeader& header, std::span<const Chunk> chunks,
                                        uint64_t first_chunk) {
  TRAINWRIGHT_CHECK(!chunks.empty() && chunks.size() <= header.chunks_per_frame);
  std::vector<uint8_t> table, codes;
  size_t tokens = 0;
  for (const Chunk& chunk : chunks) {
    if (const char* fault = FaultOf(header, chunk))
      throw Error(ErrorCode::kInternal, "chunk to encode", fault);
    TRAINWRIGHT_CHECK(chunk.tokens.empty() || MaxOf(chunk.tokens) < header.tokenizer.vocab_size);
    AppendSegments(chunk, &table);
    tokens += chunk.tokens.size();
    if (header.id_codes) {
      const size_t before = codes.size();
      header.id_codes->AppendCodes(chunk.tokens, &codes);
      AppendVarint(&table, codes.size() - before);
    }
  }
  const int high_bits = HighPlaneBits(header.tokenizer.vocab_size);
  const size_t ids_bytes = header.id_codes ? codes.size() : tokens * 2 + HighPlaneBytes(tokens, high_bits);
  const size_t size = kTableFixedBytes + table.size() + ids_bytes;
  if (table.size() > kMaxFrameTableBytes || size > kMaxFrameContentBytes) {
    throw Error(ErrorCode::kUsage, "chunk size",
                "a frame of " + std::to_string(header.chunks_per_frame) + " chunks of " +
                    std::to_string(header.chunk_tokens) + " tokens exceeds the shard format's limits",
                "", "make chunks smaller with --chunk");
  }
  std::vector<uint8_t> content;
  content.reserve(size);
  AppendInteger(&content, kFrameTag);
  AppendInteger(&content, static_cast<uint32_t>(chunks.size()));
  AppendInteger(&content, first_chunk);
  AppendInteger(&content, static_cast<uint32_t>(table.size()));
  AppendInteger(&content, static_cast<uint32_t>(tokens));
  AppendBytes(&content, table);
  if (header.id_codes) {
    AppendBytes(&content, codes);
  } else {
    AppendPlanes(chunks, tokens, high_bits, &content);
  }
  return content;
}

std::vector<Chunk> DecodeFrameContent(const ShardSetHeader& header, ByteSpan content,
                                      uint64_t expected_first_chunk, const std::string& object,
                                      uint64_t offset) {
  const auto corrupt = [&](const std::string& why) {
    return BadInputAt(offset, object, "a frame is corrupt: " + why);
  };
  ByteParser parser(content);
  const auto tag = parser.Read<uint32_t>();
  const auto chunk_count = parser.Read<uint32_t>();
  const auto first_chunk = parser.Read<uint64_t>();
  const auto table_bytes = parser.Read<uint32_t>();
  const auto token_count = parser.Read<uint32_t>();
  ByteParser table(parser.ReadBytes(table_bytes));
  const IdCodes* const id_codes = header.id_codes.get();
  const int high_bits = id_codes != nullptr ? 0 : HighPlaneBits(header.tokenizer.vocab_size);
  const ByteSpan low = parser.ReadBytes(id_codes != nullptr ? parser.remaining() : uint64_t{token_count} * 2);
  const ByteSpan high = parser.ReadBytes(HighPlaneBytes(token_count, high_bits));
  ByteParser codes(id_codes != nullptr ? low : ByteSpan());
  if (parser.failed() || parser.remaining() > 0 || tag != kFrameTag || table_bytes > kMaxFrameTableBytes) {
    throw corrupt("its parts do not fit");
  }
  if (first_chunk != expected_first_chunk) {
    throw BadInputAt(offset, object,
                     "chunk " + std::to_string(expected_first_chunk) + " must be here, found chunk " +
                         std::to_string(first_chunk) + ": frames are missing or out of order");
  }
  if (chunk_count == 0 || chunk_count > header.chunks_per_frame || chunk_count > table_bytes) {
    throw corrupt("its number of chunks is wrong");
  }
  if (high_bits == 1 && token_count % 8 != 0 && high.back() >> (token_count % 8) != 0)
    throw corrupt("stray bits");

  std::vector<Chunk> chunks(chunk_count);
  size_t tokens_done = 0;
  for (Chunk& chunk : chunks) {
    if (!ReadSegments(&table, &chunk.segments) || table.failed())
      throw corrupt("its segments are unreadable");
    uint64_t tokens = 0;
    for (const Segment& segment : chunk.segments) tokens += segment.tokens;
    if (tokens > token_count - tokens_done) throw corrupt("segments and tokens do not add up");
    if (id_codes != nullptr) {
      const ByteSpan own = codes.ReadBytes(table.ReadVarint());
      if (table.failed() || codes.failed() || tokens > own.size()) throw corrupt("its codes do not fit");
      chunk.tokens.resize(tokens);
      if (!id_codes->DecodeInto(own, chunk.tokens)) throw corrupt("its codes do not fit");
    } else {
      DecodePlanes(low.data(), high.data(), high_bits, tokens_done, tokens, &chunk.tokens);
    }
    tokens_done += tokens;
    if (const char* fault = FaultOf(header, chunk)) throw corrupt(fault);
    if (tokens > 0 && MaxOf(chunk.tokens) >= header.tokenizer.vocab_size)
      throw corrupt("a token id lies outside the vocabulary");
  }
  if (tokens_done != token_count || table.remaining() > 0 || codes.remaining() > 0)
    throw corrupt("segments and tokens do not add up");
  return chunks;
}

ShardTotals TotalsOf(RecordKind kind, std::span<const Chunk> chunks) {
  ShardTotals totals;
  totals.chunks = chunks.size();
  for (const Chunk& chunk : chunks) {
    bool starts = false;  // whether the document of the segment at hand starts in this chunk
    for (const Segment& segment : chunk.segments) {
      if ((segment.flags & kSegmentPadding) != 0) {
        totals.pad_tokens += segment.tokens;
        continue;
      }
      const bool cut = (segment.flags & kSegmentEndsMidDocument) != 0;
      if ((segment.flags & (kSegmentContinuesPrevious | kRoleFlags)) == 0) {
        starts = (segment.flags & kSegmentStartsMidDocument) == 0;
        totals.documents += starts ? 1 : 0;
      }
      totals.documents_cut += starts && cut ? 1 : 0;
      if (kind == RecordKind::kSft && (segment.flags & kSegmentNoLoss) == 0) {
        totals.loss_tokens += segment.tokens;
      }
      totals.tokens += segment.tokens;
      totals.source_bytes += segment.source_bytes;
    }
  }
  return totals;
}

}  // namespace trainwright
