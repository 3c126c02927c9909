#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/frame_content.h"
#include "lib/formats/shard.h"
#include "lib/formats/shard_layout.h"
#include "lib/formats/zstd_frame.h"

namespace trainwright {

struct ShardStreamReader::Impl {
  explicit Impl(std::unique_ptr<ByteSource> source) : reader(std::move(source)) { StartShard(); }

  Error Corrupt(uint64_t offset, const std::string& why) const {
    return BadInputAt(offset, reader.name(), why);
  }

  std::vector<uint8_t> Read(uint64_t size) {
    std::vector<uint8_t> bytes;
    if (AppendFrom(&reader, size, &bytes) < size) throw CutShortAt(reader.position(), reader.name(), "shard");
    return bytes;
  }

  void StartShard() {
    shard_offset = reader.position();
    const uint64_t size = ShardHeaderBytes(reader.Peek(kShardHeaderPrefixBytes), reader.name(), shard_offset);
    const std::vector<uint8_t> bytes = Read(size);
    ShardHeader header = DecodeShardHeader(bytes, reader.name(), shard_offset);
    const uint64_t next_chunk = seen.first_chunk + seen.totals.chunks;
    if (header.shard_number != shards || header.first_chunk != next_chunk) {
      throw Corrupt(shard_offset,
                    "shard " + std::to_string(shards) + " with chunk " + std::to_string(next_chunk) +
                        " must be here, found shard " + std::to_string(header.shard_number) + " with chunk " +
                        std::to_string(header.first_chunk) + ": shards are missing or out of order");
    }
    if (shards == 0) {
      set = std::move(header.set);
    } else if (!SameSet(set, header.set)) {
      throw Corrupt(shard_offset, "shard " + std::to_string(shards) + " belongs to another set than shard 0");
    }
    seen = ShardIndex();
    seen.shard_number = header.shard_number;
    seen.first_chunk = header.first_chunk;
    seen.header_bytes = size;
    seen.header_hash = Xxh3(bytes);
    ++shards;
  }

  void ReadFrame() {
    const uint64_t offset = reader.position();
    const std::vector<uint8_t> frame = ReadZstdFrame(&reader, kMaxFrameContentBytes);
    const std::vector<uint8_t> content =
        DecompressZstdFrame(frame, kMaxFrameContentBytes, reader.name(), offset);
    FrameEntry entry;
    entry.offset = offset - shard_offset;
    entry.size_bytes = static_cast<uint32_t>(frame.size());
    entry.content_bytes = static_cast<uint32_t>(content.size());
    entry.hash = Xxh3(frame);
    entry.content_hash = Xxh3(content);
    entry.first_chunk = seen.first_chunk + seen.totals.chunks;
    chunks = DecodeFrameContent(set, content, entry.first_chunk, reader.name(), offset);
    chunks_given = 0;
    entry.chunks = static_cast<uint32_t>(chunks.size());
    const ShardTotals frame_totals = TotalsOf(set.record_kind, chunks);
    entry.loss_tokens = static_cast<uint32_t>(frame_totals.loss_tokens);
    seen.frames.push_back(entry);
    seen.totals += frame_totals;
    totals += frame_totals;
  }

  /// Reads index and seek table, which must be those of the shard that was seen.
  /// \returns whether it was the last
  bool FinishShard() {
    const uint64_t offset = reader.position();
    const std::vector<uint8_t> bytes = Read(IndexBytes(seen.frames.size()));
    const ShardIndex index = DecodeIndex(bytes, reader.name(), offset);
    seen.last = index.last;
    seen.totals.tokens_dropped = index.totals.tokens_dropped;
    seen.content_sha256 = ContentSha256(set, seen.frames);
    if (bytes != EncodeIndex(seen))
      throw Corrupt(offset, "the shard is corrupt: it is not what its index says");
    const uint64_t seek_offset = reader.position();
    if (Read(SeekTableBytes(seen.frames.size())) != EncodeSeekTable(seen)) {
      throw Corrupt(seek_offset, "the seek table is corrupt");
    }
    totals.tokens_dropped += index.totals.tokens_dropped;
    ShardInfo& info = finished.emplace_back();
    info.shard_number = index.shard_number;
    info.first_chunk = index.first_chunk;
    info.last = index.last;
    info.size_bytes = reader.position() - shard_offset;
    info.totals = index.totals;
    info.content_sha256 = index.content_sha256;
    info.frames = std::move(seen.frames);
    return index.last;
  }

  /// Reads on until there are chunks to give.
  /// \returns false at the end of the set
  bool ReadOn() {
    while (chunks_given == chunks.size()) {
      const ByteSpan magic = reader.Peek(sizeof(uint32_t));
      const uint64_t offset = reader.position();
      if (magic.size() < sizeof(uint32_t)) throw CutShortAt(offset + magic.size(), reader.name(), "shard");
      const auto kind = ByteParser(magic).Read<uint32_t>();
      if (kind == kZstdFrameMagic) {
        ReadFrame();
      } else if (kind != kIndexFrameMagic) {
        throw Corrupt(offset, "the shard is corrupt: neither a frame nor an index is here");
      } else if (FinishShard()) {
        if (!reader.Peek(1).empty())
          throw Corrupt(reader.position(), "something follows the last shard of the set");
        return false;
      } else if (reader.Peek(1).empty()) {
        throw BadInputAt(
            reader.position(), reader.name(),
            "shard " + std::to_string(shards - 1) + " is not the last of its set, but nothing follows",
            "its producer died, or not all shards were passed on: look at its messages, and run it again");
      } else {
        StartShard();
      }
    }
    return true;
  }

  BufferedReader reader;
  ShardSetHeader set;
  ShardTotals totals;
  uint32_t shards = 0;  // begun so far
  uint64_t shard_offset = 0;
  std::vector<ShardInfo> finished;
  ShardIndex seen;  // of the current shard, from its bytes so far
  std::vector<Chunk> chunks;
  size_t chunks_given = 0;
  enum class State { kReading, kEnded, kBroken } state = State::kReading;
};

ShardStreamReader::ShardStreamReader(std::unique_ptr<ByteSource> source)
    : impl_(std::make_unique<Impl>(std::move(source))) {}
ShardStreamReader::~ShardStreamReader() = default;

const ShardSetHeader& ShardStreamReader::header() const {
  return impl_->set;
}
const ShardTotals& ShardStreamReader::totals() const {
  return impl_->totals;
}

const std::vector<ShardInfo>& ShardStreamReader::shards() const {
  return impl_->finished;
}

bool ShardStreamReader::Next(Chunk* chunk) {
  TRAINWRIGHT_CHECK(impl_->state != Impl::State::kBroken);
  if (impl_->state == Impl::State::kEnded) return false;
  impl_->state = Impl::State::kBroken;  // until this call succeeds: nobody reads on after an error
  const bool found = impl_->ReadOn();
  if (found) *chunk = std::move(impl_->chunks[impl_->chunks_given++]);
  impl_->state = found ? Impl::State::kReading : Impl::State::kEnded;
  return found;
}

}  // namespace trainwright
