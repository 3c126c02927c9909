#include "lib/formats/shard.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/frame_content.h"
#include "lib/formats/shard_layout.h"
#include "lib/formats/zstd_frame.h"

namespace trainwright {
namespace {

constexpr int kFastLevel = 4;

}  // namespace

ShardTotals& ShardTotals::operator+=(const ShardTotals& other) {
  chunks += other.chunks;
  documents += other.documents;
  tokens += other.tokens;
  pad_tokens += other.pad_tokens;
  documents_cut += other.documents_cut;
  tokens_dropped += other.tokens_dropped;
  source_bytes += other.source_bytes;
  loss_tokens += other.loss_tokens;
  return *this;
}

std::string PackModeName(PackMode mode) {
  switch (mode) {
    case PackMode::kNone:
      return "none";
    case PackMode::kConcat:
      return "concat";
    case PackMode::kBestFit:
      return "bestfit";
  }
  return "unknown";
}

std::string OverflowPolicyName(OverflowPolicy policy) {
  switch (policy) {
    case OverflowPolicy::kSplit:
      return "split";
    case OverflowPolicy::kTruncate:
      return "truncate";
    case OverflowPolicy::kDrop:
      return "drop";
    case OverflowPolicy::kError:
      return "error";
  }
  return "unknown";
}

EncodedFrame EncodeFrame(const ShardSetHeader& header, std::span<const Chunk> chunks, uint64_t first_chunk,
                         int level) {
  const std::vector<uint8_t> content = EncodeFrameContent(header, chunks, first_chunk);
  EncodedFrame frame;
  // A phrase of two ids has 4 bytes or fewer: the fast levels would look for 5 and more.
  frame.bytes = CompressZstdFrame(content, level, level <= kFastLevel ? 4 : 0);
  frame.hash = Xxh3(frame.bytes);
  frame.content_hash = Xxh3(content);
  frame.content_bytes = static_cast<uint32_t>(content.size());
  frame.first_chunk = first_chunk;
  frame.totals = TotalsOf(header.record_kind, chunks);
  return frame;
}

std::vector<Chunk> DecodeFrame(const ShardSetHeader& header, ByteSpan frame, uint64_t expected_first_chunk,
                               const std::string& object, uint64_t frame_number) {
  const std::string place = object + ", frame " + std::to_string(frame_number);
  const std::vector<uint8_t> content = DecompressZstdFrame(frame, kMaxFrameContentBytes, place, 0);
  return DecodeFrameContent(header, content, expected_first_chunk, place, 0);
}

struct ShardWriter::Impl {
  ByteSink* sink;
  ShardSetHeader header;
  ShardIndex index;
  uint64_t size_bytes = 0;
  bool finished = false;

  void Emit(ByteSpan bytes) {
    sink->Write(bytes);
    size_bytes += bytes.size();
  }
};

ShardWriter::ShardWriter(ByteSink* sink, const ShardSetHeader& header, uint32_t shard_number,
                         uint64_t first_chunk)
    : impl_(std::make_unique<Impl>()) {
  impl_->sink = sink;
  impl_->header = header;
  const std::vector<uint8_t> bytes = EncodeShardHeader({header, shard_number, first_chunk});
  impl_->index.shard_number = shard_number;
  impl_->index.first_chunk = first_chunk;
  impl_->index.header_bytes = bytes.size();
  impl_->index.header_hash = Xxh3(bytes);
  impl_->Emit(bytes);
}
ShardWriter::~ShardWriter() = default;

void ShardWriter::AddFrame(const EncodedFrame& frame) {
  ShardIndex& index = impl_->index;
  TRAINWRIGHT_CHECK(!impl_->finished && frame.first_chunk == index.first_chunk + index.totals.chunks);
  index.frames.push_back({impl_->size_bytes, static_cast<uint32_t>(frame.bytes.size()), frame.content_bytes,
                          frame.hash, frame.content_hash, frame.first_chunk,
                          static_cast<uint32_t>(frame.totals.chunks),
                          static_cast<uint32_t>(frame.totals.loss_tokens)});
  index.totals += frame.totals;
  impl_->Emit(frame.bytes);
}

void ShardWriter::Finish(bool last, uint64_t tokens_dropped) {
  TRAINWRIGHT_CHECK(!impl_->finished);
  ShardIndex& index = impl_->index;
  index.last = last;
  index.totals.tokens_dropped = tokens_dropped;
  index.content_sha256 = ContentSha256(impl_->header, index.frames);
  impl_->Emit(EncodeIndex(index));
  impl_->Emit(EncodeSeekTable(index));
  impl_->finished = true;
}

void CopyShardAsNotLast(ByteSpan shard, const std::string& name, ByteSink* sink) {
  const ShardView view(shard, name);
  const ShardPlaces places = LocateLastShard(shard, name);
  ShardIndex index =
      DecodeIndex(shard.subspan(places.index_offset, places.index_bytes), name, places.index_offset);
  index.last = false;
  sink->Write(shard.first(index.header_bytes));
  for (const FrameEntry& frame : index.frames) {
    const ByteSpan bytes = shard.subspan(frame.offset, frame.size_bytes);
    if (Xxh3(bytes) != frame.hash)
      throw BadInputAt(frame.offset, name, "a frame is corrupt: its hash does not match");
    sink->Write(bytes);
  }
  sink->Write(EncodeIndex(index));
  sink->Write(EncodeSeekTable(index));
}

uint64_t ShardWriter::size_bytes() const {
  return impl_->size_bytes;
}
const ShardTotals& ShardWriter::totals() const {
  return impl_->index.totals;
}
const Sha256Digest& ShardWriter::content_sha256() const {
  return impl_->index.content_sha256;
}

ShardView::ShardView(ByteSpan bytes, std::string name, const ShardSetHeader* set)
    : bytes_(bytes), name_(std::move(name)) {
  const ShardPlaces places = LocateLastShard(bytes_, name_);
  if (places.shard_bytes != bytes_.size())
    throw BadInputAt(0, name_, "holds more than one shard, or one of wrong size");
  ShardIndex index =
      DecodeIndex(bytes_.subspan(places.index_offset, places.index_bytes), name_, places.index_offset);
  const uint64_t seek_offset = places.index_offset + places.index_bytes;
  const std::vector<uint8_t> seek_table = EncodeSeekTable(index);
  const ByteSpan found = bytes_.subspan(seek_offset);
  if (!std::equal(found.begin(), found.end(), seek_table.begin(), seek_table.end())) {
    throw BadInputAt(seek_offset, name_, "the seek table is corrupt");
  }

  const ByteSpan prefix = bytes_.first(std::min<size_t>(bytes_.size(), kShardHeaderPrefixBytes));
  if (ShardHeaderBytes(prefix, name_, 0) != index.header_bytes || index.header_bytes > places.index_offset ||
      Xxh3(bytes_.first(index.header_bytes)) != index.header_hash) {
    throw BadInputAt(0, name_, "the header is corrupt: the index describes another");
  }
  ShardHeader header = DecodeShardHeader(bytes_.first(index.header_bytes), name_, 0);
  if (header.shard_number != index.shard_number || header.first_chunk != index.first_chunk ||
      ContentSha256(header.set, index.frames) != index.content_sha256) {
    throw BadInputAt(places.index_offset, name_, "the index is corrupt: it describes another shard");
  }
  const uint64_t most_chunks = std::min<uint64_t>(header.set.chunks_per_frame, kMaxFrameTableBytes);
  for (const FrameEntry& frame : index.frames) {
    if (frame.chunks > most_chunks) {
      throw BadInputAt(places.index_offset, name_,
                       "the index is corrupt: it declares a frame of " + std::to_string(frame.chunks) +
                           " chunks, and a frame has at most " + std::to_string(most_chunks));
    }
  }
  info_.header = std::move(header.set);
  if (set != nullptr && set->id_codes && info_.header.id_codes && *set->id_codes == *info_.header.id_codes)
    info_.header.id_codes = set->id_codes;
  info_.shard_number = index.shard_number;
  info_.first_chunk = index.first_chunk;
  info_.last = index.last;
  info_.size_bytes = bytes_.size();
  info_.totals = index.totals;
  info_.content_sha256 = index.content_sha256;
  info_.frames = std::move(index.frames);
}

std::vector<Chunk> ShardView::ReadFrame(size_t frame) const {
  const FrameEntry& entry = info_.frames.at(frame);
  const ByteSpan bytes = bytes_.subspan(entry.offset, entry.size_bytes);
  if (Xxh3(bytes) != entry.hash)
    throw BadInputAt(entry.offset, name_, "a frame is corrupt: its hash does not match");
  const std::vector<uint8_t> content =
      DecompressZstdFrame(bytes, kMaxFrameContentBytes, name_, entry.offset, ContentChecksum::kIgnore);
  if (content.size() != entry.content_bytes || Xxh3(content) != entry.content_hash) {
    throw BadInputAt(entry.offset, name_, "a frame is corrupt: its content is not what the index says");
  }
  std::vector<Chunk> chunks =
      DecodeFrameContent(info_.header, content, entry.first_chunk, name_, entry.offset);
  if (chunks.size() != entry.chunks) {
    throw BadInputAt(entry.offset, name_,
                     "a frame is corrupt: it has another number of chunks than the index says");
  }
  if (TotalsOf(info_.header.record_kind, chunks).loss_tokens != entry.loss_tokens) {
    throw BadInputAt(entry.offset, name_,
                     "a frame is corrupt: it has another number of predicted tokens than the index says");
  }
  return chunks;
}

std::vector<ByteSpan> ShardView::Split(ByteSpan bytes, const std::string& name) {
  std::vector<ByteSpan> shards;
  do {
    const uint64_t shard_bytes = LocateLastShard(bytes, name).shard_bytes;
    shards.push_back(bytes.last(shard_bytes));
    bytes = bytes.first(bytes.size() - shard_bytes);
  } while (!bytes.empty());
  std::reverse(shards.begin(), shards.end());
  return shards;
}

}  // namespace trainwright
