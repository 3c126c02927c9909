/// The shard: chunks of packed tokens in a file that is also a legal zstd stream: man/trainwright-shard.5,
/// version 1.
///
///   HEADER (skippable frame) | FRAME* (zstd frames, one or more chunks each) | INDEX (skippable) | SEEK
///   (skippable)
///
/// The index holds a hash of the header's bytes and of every compressed frame, the seek table is a pure
/// function of the index, so every bit of the file is covered. The index of the last shard of a set says so:
/// on a pipe a missing shard is as visible as a cut one. A set as one file or stream is the concatenation of
/// its shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/formats/id_codes.h"
#include "lib/formats/record_kind.h"
#include "lib/formats/text_role.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {

enum class PackMode : uint8_t { kNone = 0, kConcat = 1, kBestFit = 2 };
enum class OverflowPolicy : uint8_t { kSplit = 0, kTruncate = 1, kDrop = 2, kError = 3 };

/// Tokens of the longest chunk. A header that declares more is refused before memory is taken for it.
inline constexpr uint32_t kMaxChunkTokens = 1u << 24;

/// What all shards of a set agree on.
struct ShardSetHeader {
  TokenizerIdentity tokenizer;  ///< `model` is stored in shard 0 only
  RecordKind record_kind = RecordKind::kLm;
  PackMode mode = PackMode::kBestFit;
  OverflowPolicy overflow = OverflowPolicy::kSplit;
  uint32_t chunk_tokens =
      0;  ///< positions in a chunk, padding included; the most a chunk of mode kNone holds
  uint32_t chunks_per_frame = 1;
  std::string provenance_json;  ///< canonical JSON, as in TokenStreamHeader
  /// How frames store the ids; nullptr: as they are. Every shard carries the table.
  std::shared_ptr<const IdCodes> id_codes;
};

/// Segment flags.
inline constexpr uint8_t kSegmentStartsMidDocument = 1 << 0;
inline constexpr uint8_t kSegmentEndsMidDocument = 1 << 1;
inline constexpr uint8_t kSegmentPadding = 1 << 2;
/// sft: its tokens are read, not predicted; contrastive: an instruction, read and not pooled.
inline constexpr uint8_t kSegmentNoLoss = 1 << 3;
/// sft: continues the document of the segment before, in the same attention span; contrastive: with its
/// text.
inline constexpr uint8_t kSegmentContinuesPrevious = 1 << 4;
/// sft, with kSegmentEndsMidDocument: next_token is not predicted.
inline constexpr uint8_t kSegmentNextNoLoss = 1 << 5;
/// contrastive: its text is a positive, or a negative, of the query before; with neither, a query.
inline constexpr uint8_t kSegmentPositive = 1 << 6;
inline constexpr uint8_t kSegmentNegative = 1 << 7;

/// A run of positions of a chunk that belong to one document (or to padding). In sft records a document is a
/// run of segments that are alternately predicted and not predicted: all but the first have
/// kSegmentContinuesPrevious, kSegmentStartsMidDocument is said of the first and kSegmentEndsMidDocument of
/// the last. In contrastive records a text is an attention span: a segment of instruction or none, and one
/// that is pooled; a record is never cut.
struct Segment {
  uint32_t tokens = 0;  ///< >= 1, except that a document without tokens keeps an empty segment
  uint8_t flags = 0;
  uint32_t next_token = kNoId;  ///< label of the last position when kSegmentEndsMidDocument, else kNoId
  uint64_t source_bytes = 0;    ///< bytes of text that the segment's tokens stand for
  bool operator==(const Segment&) const = default;
};

/// Of a contrastive record's segment.
inline TextRole RoleOf(const Segment& segment) {
  if ((segment.flags & kSegmentPositive) != 0) return TextRole::kPositive;
  return (segment.flags & kSegmentNegative) != 0 ? TextRole::kNegative : TextRole::kQuery;
}
inline uint8_t RoleFlag(TextRole role) {
  constexpr uint8_t kFlags[kTextRoleCount] = {0, kSegmentPositive, kSegmentNegative};
  return kFlags[static_cast<uint8_t>(role)];
}

/// One training sequence. sum(segment.tokens) == tokens.size(); padding is the last segment, its tokens are
/// zero.
struct Chunk {
  std::vector<Segment> segments;
  std::vector<uint32_t> tokens;
  bool operator==(const Chunk&) const = default;
};

/// Counts of a shard or a set.
struct ShardTotals {
  uint64_t chunks = 0;
  /// Those that start in it: parts that start mid-document do not count. Of contrastive records: whole
  /// records.
  uint64_t documents = 0;
  uint64_t tokens = 0;  ///< without padding
  uint64_t pad_tokens = 0;
  uint64_t documents_cut = 0;   ///< of these, those whose first part ends mid-document
  uint64_t tokens_dropped = 0;  ///< by the overflow policy
  uint64_t source_bytes = 0;
  uint64_t loss_tokens = 0;  ///< of sft records: tokens without kSegmentNoLoss; 0 of others
  ShardTotals& operator+=(const ShardTotals& other);
  bool operator==(const ShardTotals&) const = default;
};

/// A compressed frame and what the index says about it.
struct EncodedFrame {
  std::vector<uint8_t> bytes;  ///< one zstd frame with content size and content checksum
  uint64_t hash = 0;           ///< XXH3-64 of `bytes`
  uint64_t content_hash = 0;   ///< XXH3-64 of the decompressed content: independent of the compression level
  uint32_t content_bytes = 0;
  uint64_t first_chunk = 0;  ///< global number of its first chunk
  ShardTotals totals;        ///< of this frame; tokens_dropped is 0
};

/// Encodes chunks into one frame. Pure and thread-safe; same input, level and zstd version give the same
/// bytes.
///
/// \param first_chunk global number of chunks[0]
/// \param level zstd level 1..19
/// \throws Error{kUsage} when the content exceeds the format's limits: 64 MiB, of which 16 MiB for segments
EncodedFrame EncodeFrame(const ShardSetHeader& header, std::span<const Chunk> chunks, uint64_t first_chunk,
                         int level);

/// Decodes one frame's compressed bytes. Pure and thread-safe.
/// \param object and frame_number name the place in messages
/// \throws Error{kBadInput}
std::vector<Chunk> DecodeFrame(const ShardSetHeader& header, ByteSpan frame, uint64_t expected_first_chunk,
                               const std::string& object, uint64_t frame_number);

/// Writes one shard. Not thread-safe.
class ShardWriter {
 public:
  /// Writes the header. `sink` outlives the writer; the writer never commits it.
  ShardWriter(ByteSink* sink, const ShardSetHeader& header, uint32_t shard_number, uint64_t first_chunk);
  ~ShardWriter();
  void AddFrame(const EncodedFrame& frame);
  /// Writes index and seek table.
  /// \param last whether this is the set's last shard
  /// \param tokens_dropped by the packer, for the totals
  void Finish(bool last, uint64_t tokens_dropped);
  /// Compressed bytes so far, header included.
  uint64_t size_bytes() const;
  const ShardTotals& totals() const;
  /// Identity of the content: SHA-256 over the set's invariants and the frames' content hashes. After Finish.
  const Sha256Digest& content_sha256() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Copies a shard but for one bit: the copy is not the last of its set. Its frames are checked on the way.
/// \param name for messages
/// \throws Error{kBadInput}
void CopyShardAsNotLast(ByteSpan shard, const std::string& name, ByteSink* sink);

struct FrameEntry {
  uint64_t offset = 0;  ///< from the start of the shard
  uint32_t size_bytes = 0;
  uint32_t content_bytes = 0;
  uint64_t hash = 0, content_hash = 0;
  uint64_t first_chunk = 0;
  uint32_t chunks = 0;
  uint32_t loss_tokens = 0;  ///< as in ShardTotals
};

/// What a shard says about itself.
struct ShardInfo {
  ShardSetHeader header;  ///< `tokenizer.model` is empty except in shard 0
  uint32_t shard_number = 0;
  uint64_t first_chunk = 0;
  bool last = false;
  uint64_t size_bytes = 0;  ///< of the whole shard
  ShardTotals totals;
  Sha256Digest content_sha256{};
  std::vector<FrameEntry> frames;
};

/// Random access to one shard in memory (a mapped file). Opening checks header, index and seek table; frames
/// are checked against the index whenever they are decoded. Const methods are thread-safe.
class ShardView {
 public:
  /// \param bytes exactly one shard; outlives the view
  /// \param name for messages
  /// \param set of another shard, whose table of codes is shared when this one has the same; or nullptr
  /// \throws Error{kBadInput}: not a shard, unknown version or required flag, corrupt, cut
  ShardView(ByteSpan bytes, std::string name, const ShardSetHeader* set = nullptr);
  const ShardInfo& info() const { return info_; }
  const std::string& name() const { return name_; }
  /// \param frame index into info().frames
  std::vector<Chunk> ReadFrame(size_t frame) const;
  /// Splits a concatenation of shards into its shards by walking their trailers from the end.
  static std::vector<ByteSpan> Split(ByteSpan bytes, const std::string& name);

 private:
  ByteSpan bytes_;
  std::string name_;
  ShardInfo info_;
};

/// Reads a set of concatenated shards from a source in one pass, in constant memory but for the
/// index: 48 bytes a frame.
/// Not thread-safe.
class ShardStreamReader {
 public:
  /// Reads the first header.
  /// \throws Error{kBadInput}
  explicit ShardStreamReader(std::unique_ptr<ByteSource> source);
  ~ShardStreamReader();
  const ShardSetHeader& header() const;
  /// The next chunk.
  /// \returns false only after a shard marked last was read whole and agrees with its index
  /// \throws Error{kBadInput} with the byte offset on a cut, corrupt, missing or reordered shard
  [[nodiscard]] bool Next(Chunk* chunk);
  /// Of all shards read so far; complete once Next returned false.
  const ShardTotals& totals() const;
  /// Those read whole so far, tokenizer's model and provenance left out; complete once Next returned false.
  const std::vector<ShardInfo>& shards() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The names that --mode, --overflow and JSON use.
std::string PackModeName(PackMode mode);
std::string OverflowPolicyName(OverflowPolicy policy);

}  // namespace trainwright
