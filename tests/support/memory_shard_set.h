/// A shard set that lives in memory: what packing would have stored, without the storing.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/formats/frame_content.h"
#include "lib/formats/shard_set.h"

namespace trainwright::test {

class MemoryShardSet final : public ShardSet {
 public:
  MemoryShardSet(std::vector<Chunk> chunks, uint32_t chunks_per_frame, uint32_t vocab_size = 1u << 30,
                 RecordKind kind = RecordKind::kLm)
      : chunks_(std::move(chunks)), chunks_per_frame_(chunks_per_frame) {
    header_.tokenizer.kind = "bytes";
    header_.tokenizer.vocab_size = vocab_size;
    header_.chunks_per_frame = chunks_per_frame;
    header_.provenance_json = "{}";
    header_.record_kind = kind;
    totals_ = TotalsOf(kind, chunks_);
    ShardInfo& shard = shards_.emplace_back();
    shard.header = header_;
    shard.last = true;
    shard.totals = totals_;
    for (uint64_t first = 0; first < chunks_.size(); first += chunks_per_frame) {
      shard.frames.push_back(
          {.offset = 1000 + first,
           .first_chunk = first,
           .chunks = static_cast<uint32_t>(std::min<uint64_t>(chunks_per_frame, chunks_.size() - first))});
    }
  }
  const ShardSetHeader& header() const override { return header_; }
  const ShardTotals& totals() const override { return totals_; }
  const std::vector<ShardInfo>& shards() const override { return shards_; }
  uint64_t chunks() const override { return chunks_.size(); }
  const Sha256Digest& content_sha256() const override { return content_; }
  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    *first_chunk = chunk / chunks_per_frame_ * chunks_per_frame_;
    const uint64_t end = std::min<uint64_t>(*first_chunk + chunks_per_frame_, chunks_.size());
    return {chunks_.begin() + static_cast<ptrdiff_t>(*first_chunk),
            chunks_.begin() + static_cast<ptrdiff_t>(end)};
  }
  void VerifyAll() const override {}
  void set_content_sha256(const Sha256Digest& content) { content_ = content; }
  void set_packing(PackMode mode, OverflowPolicy overflow) {
    header_.mode = mode;
    header_.overflow = overflow;
  }
  /// As pack --stride makes it.
  void set_windows(uint32_t chunk_tokens, uint32_t stride) {
    header_.chunk_tokens = chunk_tokens;
    header_.provenance_json =
        R"({"inputs":[],"options":{"stride":)" + std::to_string(stride) + R"(},"tool":"pack","version":"0"})";
  }
  void set_tokenizer_sha256(const Sha256Digest& sha256) { header_.tokenizer.sha256 = sha256; }

 private:
  ShardSetHeader header_;
  std::vector<Chunk> chunks_;
  uint32_t chunks_per_frame_;
  ShardTotals totals_;
  std::vector<ShardInfo> shards_;
  Sha256Digest content_{};
};

}  // namespace trainwright::test
