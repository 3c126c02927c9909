/// A shard set whose frames can be corrupt, slow, or too much for the memory.
#pragma once

#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/memory_shard_set.h"

namespace trainwright::test {

/// A set some of whose frames are corrupt or slow.
class FaultyShardSet : public ShardSet {
 public:
  FaultyShardSet(std::vector<Chunk> chunks, uint32_t chunks_per_frame)
      : sound_(std::move(chunks), chunks_per_frame) {}
  const ShardSetHeader& header() const override { return sound_.header(); }
  const ShardTotals& totals() const override { return sound_.totals(); }
  const std::vector<ShardInfo>& shards() const override { return sound_.shards(); }
  uint64_t chunks() const override { return sound_.chunks(); }
  const Sha256Digest& content_sha256() const override { return sound_.content_sha256(); }
  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    ++reads;
    if (slow.contains(chunk)) std::this_thread::sleep_for(delay);
    int this_read = reads;
    if (fails_at.compare_exchange_strong(this_read, -1)) throw std::bad_alloc();
    std::vector<Chunk> chunks = sound_.ReadFrameOf(chunk, first_chunk);
    for (uint64_t i = *first_chunk; i < *first_chunk + chunks.size(); ++i) {
      if (!restored && corrupt.contains(i))
        throw Error(ErrorCode::kBadInput, "shard-7.tws", "a frame is corrupt", "byte 99");
    }
    return chunks;
  }
  void VerifyAll() const override {}

  std::set<uint64_t> corrupt, slow;
  std::chrono::milliseconds delay{0};
  mutable std::atomic<int> reads = 0;
  mutable std::atomic<int> fails_at = -1;  // the number of the read that finds no memory
  std::atomic<bool> restored = false;      // nothing is corrupt any more

 private:
  MemoryShardSet sound_;
};

}  // namespace trainwright::test
