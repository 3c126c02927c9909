#include "lib/formats/shard_layout.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/frame_content.h"
#include "lib/formats/zstd_frame.h"

namespace trainwright {

namespace {

/// The ids are stored as codes; the table of codes is the header's extension.
constexpr uint64_t kIdCodesFlag = 1 << 0;

}  // namespace

const FileHeaderFormat kShardFormat = {
    {0x89, 'T', 'W', 'S', 0x0D, 0x0A, 0x1A, 0x0A},
    "shard",
    24,
    kIdCodesFlag,
    "shards are made of text and records by pretokenize FILE | pack --chunk 32768 -o shards/"};

namespace {

constexpr uint64_t kIndexMagic = 0x3158444953575402;    // "\2TWSIDX1"
constexpr uint64_t kTrailerMagic = 0x31444E4553575403;  // "\3TWSEND1"
constexpr size_t kIndexFixedBytes = 136;
constexpr size_t kIndexEntryBytes = 48;
constexpr size_t kIndexTrailerBytes = 32;
constexpr uint32_t kLastShardFlag = 1 << 0;

constexpr uint32_t kSeekFooterMagic = 0x8F92EAB1;
constexpr size_t kSeekEntryBytes = 8;
constexpr size_t kSeekFooterBytes = 9;

void AppendSkippableHeader(std::vector<uint8_t>* out, uint32_t magic, uint64_t payload_bytes) {
  TRAINWRIGHT_CHECK(payload_bytes <= UINT32_MAX);
  AppendInteger(out, magic);
  AppendInteger(out, static_cast<uint32_t>(payload_bytes));
}

template <typename Integer>
Integer IntegerAt(ByteSpan bytes, uint64_t offset) {
  return ByteParser(bytes.subspan(offset)).Read<Integer>();
}

}  // namespace

std::vector<uint8_t> EncodeShardHeader(const ShardHeader& header) {
  const ShardSetHeader& set = header.set;
  TRAINWRIGHT_CHECK(set.chunk_tokens > 0 && set.chunks_per_frame > 0);
  FileHeader file_header = {set.tokenizer, set.record_kind, set.provenance_json, {}};
  if (set.id_codes) {
    file_header.required_flags |= kIdCodesFlag;
    file_header.extension = set.id_codes->EncodeTable();
  }
  if (header.shard_number != 0) file_header.tokenizer.model.clear();
  std::vector<uint8_t>& settings = file_header.settings;
  settings.push_back(static_cast<uint8_t>(set.mode));
  settings.push_back(static_cast<uint8_t>(set.overflow));
  settings.push_back(static_cast<uint8_t>(HighPlaneBits(set.tokenizer.vocab_size)));
  settings.push_back(0);
  AppendInteger(&settings, set.chunk_tokens);
  AppendInteger(&settings, set.chunks_per_frame);
  AppendInteger(&settings, header.shard_number);
  AppendInteger(&settings, header.first_chunk);

  const std::vector<uint8_t> payload = EncodeFileHeader(kShardFormat, file_header);
  std::vector<uint8_t> frame;
  frame.reserve(kSkippableHeaderBytes + payload.size());
  AppendSkippableHeader(&frame, kHeaderFrameMagic, payload.size());
  AppendBytes(&frame, payload);
  return frame;
}

uint64_t ShardHeaderBytes(ByteSpan head, const std::string& object, uint64_t offset) {
  const ByteSpan prefix =
      head.size() > kSkippableHeaderBytes ? head.subspan(kSkippableHeaderBytes) : ByteSpan();
  if (!head.empty() && prefix.empty()) {
    std::vector<uint8_t> magic;
    AppendInteger(&magic, kHeaderFrameMagic);
    const size_t seen = std::min(head.size(), magic.size());
    if (!std::equal(magic.begin(), magic.begin() + static_cast<ptrdiff_t>(seen), head.begin())) {
      throw BadInputAt(
          offset, object, "is not a shard",
          "shards are made of text and records by pretokenize FILE | pack --chunk 32768 -o shards/");
    }
    throw CutShortAt(offset + head.size(), object, "shard");
  }
  const uint64_t size = FileHeaderSize(kShardFormat, prefix, object, offset + kSkippableHeaderBytes);
  if (IntegerAt<uint32_t>(head, 0) != kHeaderFrameMagic || IntegerAt<uint32_t>(head, 4) != size) {
    throw BadInputAt(offset, object, "the header is corrupt: its frame and its size disagree");
  }
  return kSkippableHeaderBytes + size;
}

ShardHeader DecodeShardHeader(ByteSpan frame, const std::string& object, uint64_t offset) {
  FileHeader file_header = DecodeFileHeader(kShardFormat, frame.subspan(kSkippableHeaderBytes), object,
                                            offset + kSkippableHeaderBytes);
  ShardHeader header;
  ShardSetHeader& set = header.set;
  ByteParser settings(file_header.settings);
  const auto mode = settings.Read<uint8_t>();
  const auto overflow = settings.Read<uint8_t>();
  const auto high_plane_bits = settings.Read<uint8_t>();
  settings.Read<uint8_t>();
  set.chunk_tokens = settings.Read<uint32_t>();
  set.chunks_per_frame = settings.Read<uint32_t>();
  header.shard_number = settings.Read<uint32_t>();
  header.first_chunk = settings.Read<uint64_t>();
  if (set.chunk_tokens > kMaxChunkTokens) {
    throw BadInputAt(offset, object,
                     "the header declares chunks of " + std::to_string(set.chunk_tokens) +
                         " tokens, and the format has at most " + std::to_string(kMaxChunkTokens));
  }
  if (mode > static_cast<uint8_t>(PackMode::kBestFit) ||
      overflow > static_cast<uint8_t>(OverflowPolicy::kError) || set.chunk_tokens == 0 ||
      set.chunks_per_frame == 0 || high_plane_bits != HighPlaneBits(file_header.tokenizer.vocab_size) ||
      (header.shard_number != 0 && !file_header.tokenizer.model.empty())) {
    throw BadInputAt(offset, object, "the header is corrupt: its settings are impossible");
  }
  set.mode = static_cast<PackMode>(mode);
  set.overflow = static_cast<OverflowPolicy>(overflow);
  set.tokenizer = std::move(file_header.tokenizer);
  set.record_kind = file_header.record_kind;
  if ((file_header.required_flags & kIdCodesFlag) != 0) {
    set.id_codes = std::make_shared<const IdCodes>(
        IdCodes::DecodeTable(file_header.extension, set.tokenizer.vocab_size, object, offset));
  }
  set.provenance_json = std::move(file_header.provenance_json);
  return header;
}

bool SameSet(const ShardSetHeader& left, const ShardSetHeader& right) {
  const auto key = [](const ShardSetHeader& set) {
    const TokenizerIdentity& tokenizer = set.tokenizer;
    return std::tie(tokenizer.kind, tokenizer.sha256, tokenizer.vocab_size, tokenizer.bos_id,
                    tokenizer.eos_id, tokenizer.pad_id, tokenizer.unk_id, set.record_kind, set.mode,
                    set.overflow, set.chunk_tokens, set.chunks_per_frame, set.provenance_json);
  };
  const auto table = [](const ShardSetHeader& set) {
    return set.id_codes ? set.id_codes->EncodeTable() : std::vector<uint8_t>();
  };
  return key(left) == key(right) && table(left) == table(right);
}

uint64_t IndexBytes(uint64_t frames) {
  return kSkippableHeaderBytes + kIndexFixedBytes + frames * kIndexEntryBytes + kIndexTrailerBytes;
}

std::vector<uint8_t> EncodeIndex(const ShardIndex& index) {
  std::vector<uint8_t> out;
  const uint64_t size = IndexBytes(index.frames.size());
  out.reserve(size);
  AppendSkippableHeader(&out, kIndexFrameMagic, size - kSkippableHeaderBytes);
  AppendInteger(&out, kIndexMagic);
  AppendInteger(&out, index.last ? kLastShardFlag : 0);
  AppendInteger(&out, index.shard_number);
  AppendInteger(&out, index.first_chunk);
  AppendInteger(&out, index.header_bytes);
  AppendInteger(&out, index.header_hash);
  AppendInteger(&out, static_cast<uint64_t>(index.frames.size()));
  const ShardTotals& totals = index.totals;
  for (const uint64_t value : {totals.chunks, totals.documents, totals.tokens, totals.pad_tokens,
                               totals.documents_cut, totals.tokens_dropped, totals.source_bytes}) {
    AppendInteger(&out, value);
  }
  AppendBytes(&out, index.content_sha256);
  for (const FrameEntry& frame : index.frames) {
    for (const uint64_t value : {frame.offset, frame.hash, frame.content_hash, frame.first_chunk})
      AppendInteger(&out, value);
    for (const uint32_t value : {frame.size_bytes, frame.content_bytes, frame.chunks, frame.loss_tokens})
      AppendInteger(&out, value);
  }
  AppendInteger(&out, size);
  AppendInteger(&out, ShardBytes(index));
  AppendInteger(&out, kTrailerMagic);
  AppendInteger(&out, Xxh3(out));
  return out;
}

ShardIndex DecodeIndex(ByteSpan frame, const std::string& object, uint64_t offset) {
  const auto corrupt = [&](const std::string& why) {
    return BadInputAt(offset, object, "the index is corrupt: " + why);
  };
  if (frame.size() < IndexBytes(0)) throw corrupt("it is too short");
  if (IntegerAt<uint64_t>(frame, frame.size() - 8) != Xxh3(frame.first(frame.size() - 8))) {
    throw corrupt("its hash does not match");
  }
  ByteParser parser(frame);
  const auto frame_magic = parser.Read<uint32_t>();
  const auto payload_bytes = parser.Read<uint32_t>();
  const auto index_magic = parser.Read<uint64_t>();
  const auto flags = parser.Read<uint32_t>();
  ShardIndex index;
  index.last = (flags & kLastShardFlag) != 0;
  index.shard_number = parser.Read<uint32_t>();
  index.first_chunk = parser.Read<uint64_t>();
  index.header_bytes = parser.Read<uint64_t>();
  index.header_hash = parser.Read<uint64_t>();
  const auto frame_count = parser.Read<uint64_t>();
  ShardTotals& totals = index.totals;
  for (uint64_t* value : {&totals.chunks, &totals.documents, &totals.tokens, &totals.pad_tokens,
                          &totals.documents_cut, &totals.tokens_dropped, &totals.source_bytes}) {
    *value = parser.Read<uint64_t>();
  }
  const ByteSpan digest = parser.ReadBytes(index.content_sha256.size());
  std::copy(digest.begin(), digest.end(), index.content_sha256.begin());
  if (frame_magic != kIndexFrameMagic || payload_bytes != frame.size() - kSkippableHeaderBytes ||
      index_magic != kIndexMagic || (flags & ~kLastShardFlag) != 0) {
    throw corrupt("it is no index of this version");
  }
  if (frame_count > frame.size() || frame.size() != IndexBytes(frame_count))
    throw corrupt("its size is wrong");

  index.frames.resize(frame_count);
  uint64_t next_offset = index.header_bytes;
  uint64_t next_chunk = index.first_chunk;
  for (FrameEntry& entry : index.frames) {
    for (uint64_t* value : {&entry.offset, &entry.hash, &entry.content_hash, &entry.first_chunk}) {
      *value = parser.Read<uint64_t>();
    }
    for (uint32_t* value : {&entry.size_bytes, &entry.content_bytes, &entry.chunks, &entry.loss_tokens})
      *value = parser.Read<uint32_t>();
    totals.loss_tokens += entry.loss_tokens;
    if (entry.offset != next_offset || entry.first_chunk != next_chunk || entry.chunks == 0) {
      throw corrupt("its frames do not follow each other");
    }
    next_offset += entry.size_bytes;
    next_chunk += entry.chunks;
  }
  const auto index_bytes = parser.Read<uint64_t>();
  const auto shard_bytes = parser.Read<uint64_t>();
  const auto trailer_magic = parser.Read<uint64_t>();
  if (index_bytes != frame.size() || shard_bytes != ShardBytes(index) || trailer_magic != kTrailerMagic ||
      totals.chunks != next_chunk - index.first_chunk) {
    throw corrupt("its sums are wrong");
  }
  return index;
}

uint64_t SeekTableBytes(uint64_t frames) {
  return kSkippableHeaderBytes + (frames + 2) * kSeekEntryBytes + kSeekFooterBytes;  // + 2: header and index
}

std::vector<uint8_t> EncodeSeekTable(const ShardIndex& index) {
  const uint64_t frames = index.frames.size();
  std::vector<uint8_t> out;
  out.reserve(SeekTableBytes(frames));
  AppendSkippableHeader(&out, kSeekTableFrameMagic, SeekTableBytes(frames) - kSkippableHeaderBytes);
  const auto append_entry = [&](uint64_t size_bytes, uint32_t content_bytes) {
    AppendInteger(&out, static_cast<uint32_t>(size_bytes));
    AppendInteger(&out, content_bytes);
  };
  append_entry(index.header_bytes, 0);
  for (const FrameEntry& frame : index.frames) append_entry(frame.size_bytes, frame.content_bytes);
  append_entry(IndexBytes(frames), 0);
  AppendInteger(&out, static_cast<uint32_t>(frames + 2));
  AppendInteger(&out, uint8_t{0});  // descriptor: entries without checksums
  AppendInteger(&out, kSeekFooterMagic);
  return out;
}

uint64_t ShardBytes(const ShardIndex& index) {
  const uint64_t frames_end =
      index.frames.empty() ? index.header_bytes : index.frames.back().offset + index.frames.back().size_bytes;
  return frames_end + IndexBytes(index.frames.size()) + SeekTableBytes(index.frames.size());
}

Sha256Digest ContentSha256(const ShardSetHeader& header, const std::vector<FrameEntry>& frames) {
  std::vector<uint8_t> invariants;
  AppendBytes(&invariants, AsBytes("trainwright.shard/1"));
  AppendBytes(&invariants, header.tokenizer.sha256);
  AppendInteger(&invariants, header.tokenizer.vocab_size);
  AppendInteger(&invariants, static_cast<uint8_t>(header.record_kind));
  AppendInteger(&invariants, static_cast<uint8_t>(header.mode));
  AppendInteger(&invariants, static_cast<uint8_t>(header.overflow));
  AppendInteger(&invariants, header.chunk_tokens);
  if (header.id_codes) AppendBytes(&invariants, header.id_codes->EncodeTable());
  for (const FrameEntry& frame : frames) AppendInteger(&invariants, frame.content_hash);
  return Sha256Of(invariants);
}

ShardPlaces LocateLastShard(ByteSpan bytes, const std::string& object) {
  const auto cut = [&] { return CutShortAt(bytes.size(), object, "shard"); };
  // The head tells another file from one of ours that was cut.
  (void)ShardHeaderBytes(bytes.first(std::min(bytes.size(), kShardHeaderPrefixBytes)), object, 0);
  if (bytes.size() < kSeekFooterBytes) throw cut();
  const ByteSpan footer = bytes.last(kSeekFooterBytes);
  const auto entries = IntegerAt<uint32_t>(footer, 0);
  if (IntegerAt<uint32_t>(footer, 5) != kSeekFooterMagic || entries < 2) throw cut();
  const uint64_t frames = entries - 2;
  const uint64_t tail_bytes = IndexBytes(frames) + SeekTableBytes(frames);
  if (tail_bytes > bytes.size()) throw cut();
  const ByteSpan trailer = bytes.last(SeekTableBytes(frames) + kIndexTrailerBytes).first(kIndexTrailerBytes);
  const auto index_bytes = IntegerAt<uint64_t>(trailer, 0);
  const auto shard_bytes = IntegerAt<uint64_t>(trailer, 8);
  if (IntegerAt<uint64_t>(trailer, 16) != kTrailerMagic || index_bytes != IndexBytes(frames)) throw cut();
  if (shard_bytes < tail_bytes || shard_bytes > bytes.size()) throw cut();
  return {shard_bytes, shard_bytes - tail_bytes, index_bytes};
}

}  // namespace trainwright
