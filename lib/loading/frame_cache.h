/// Frames of a shard set that were decoded before, the least recently used given up first: for random access
/// to chunks that share a frame.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/token_run.h"

namespace trainwright {

/// The chunks of a frame with narrow ids.
class DecodedFrame {
 public:
  DecodedFrame(const std::vector<Chunk>& chunks, uint64_t first_chunk, uint32_t vocab_size);
  uint64_t first_chunk() const { return first_chunk_; }
  uint64_t chunks() const { return segments_.size(); }
  /// The chunk of that number in the set.
  Chunk ChunkAt(uint64_t chunk) const;
  size_t size_bytes() const { return size_bytes_; }

 private:
  uint64_t first_chunk_;
  std::vector<std::vector<Segment>> segments_;
  std::vector<size_t> token_begins_;
  TokenRun tokens_;
  size_t size_bytes_;
};

/// Thread-safe.
class FrameCache {
 public:
  /// \param set outlives the cache
  /// \param budget_bytes of decoded frames; 0: nothing is kept
  FrameCache(const ShardSet* set, int64_t budget_bytes) : set_(set), budget_bytes_(budget_bytes) {}
  /// As ShardSet::ReadFrameOf, of the frame's chunks `wanted` only, in ascending order: calls `take` for
  /// each. Chunks after the frame's end are left alone.
  /// \returns how many were taken, at least 1
  /// \throws what reading the shards throws
  template <typename Take>
  size_t ReadChunks(const std::vector<uint64_t>& wanted, size_t begin, const Take& take) {
    if (budget_bytes_ > 0) {
      const std::shared_ptr<const DecodedFrame> frame = FrameOf(wanted[begin]);
      size_t end = begin;
      for (; end < wanted.size() && wanted[end] < frame->first_chunk() + frame->chunks(); ++end) {
        take(end, frame->ChunkAt(wanted[end]));
      }
      return end - begin;
    }
    uint64_t first_chunk = 0;
    const std::vector<Chunk> frame = set_->ReadFrameOf(wanted[begin], &first_chunk);
    size_t end = begin;
    for (; end < wanted.size() && wanted[end] < first_chunk + frame.size(); ++end) {
      take(end, frame[wanted[end] - first_chunk]);
    }
    return end - begin;
  }
  /// Of the frames that are kept.
  int64_t held_bytes() const;

 private:
  struct Kept {
    std::shared_ptr<const DecodedFrame> frame;
    std::list<uint64_t>::iterator use;
  };
  std::shared_ptr<const DecodedFrame> FrameOf(uint64_t chunk);
  /// The frame's first chunk, which is its name here.
  uint64_t NameOf(uint64_t chunk) const;

  const ShardSet* set_;
  const int64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::list<uint64_t> uses_;  // the latest first
  std::unordered_map<uint64_t, Kept> kept_;
  int64_t held_bytes_ = 0;
};

}  // namespace trainwright
