/// Chunks -> frames compressed in parallel -> shards, one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "lib/formats/shard.h"
#include "lib/io/ordered_workers.h"
#include "lib/packing/shard_output.h"
#include "lib/packing/shard_set_summary.h"

namespace trainwright {

/// `remap` holds chunks of this many tokens back, padding included, until it has counted them. What else a
/// chunk and its segments take counts as tokens of 4 bytes: 64 MiB in all.
inline constexpr uint64_t kRemapTokens = uint64_t{1} << 24;

struct ShardSetWriterOptions {
  int level = 3;    ///< of zstd, 1..19
  int threads = 1;  ///< >= 1; the bytes do not depend on it
  uint64_t shard_size_bytes = uint64_t{256}
                              << 20;  ///< a shard's frames stay below it unless a single one exceeds it
  /// Stores ids as codes by frequency (IdCodes), counted over the chunks that are held back.
  bool remap = false;
};

/// Not thread-safe. Memory: about threads + 2 frames in each stage, and 64 MiB with `remap`.
class ShardSetWriter {
 public:
  /// \param output outlives the writer, which never seals it
  ShardSetWriter(const ShardSetHeader& header, const ShardSetWriterOptions& options, ShardOutput* output);

  /// Goes on after the shards of a set that has the writer's header. Called before the first Add.
  void ContinueBehind(const std::vector<ShardInfo>& shards);

  /// \param tokens_dropped by the packer so far: a shard's share of them does not depend on how many frames
  /// are under way
  void Add(Chunk chunk, uint64_t tokens_dropped);
  /// \returns what the whole set holds; without a chunk there is no shard
  ShardSetSummary Finish(uint64_t tokens_dropped);

  /// Complete, table of codes included, once Finish returned.
  const ShardSetHeader& header() const { return header_; }

 private:
  struct HeldBack {
    Chunk chunk;
    uint64_t tokens_dropped;
  };
  struct Job {
    std::vector<Chunk> chunks;
    uint64_t first_chunk;
    uint64_t tokens_dropped;
  };
  struct Done {
    EncodedFrame frame;
    uint64_t tokens_dropped;
  };

  void MakeCodes();
  void AddToFrame(Chunk chunk, uint64_t tokens_dropped);
  void PushFrame(uint64_t tokens_dropped);
  void WriteFrame();
  void CloseShard(bool last);

  ShardSetHeader header_;
  std::vector<uint64_t> counts_;  // of each id, until there are codes; empty when there will be none
  std::deque<HeldBack> held_back_;
  uint64_t held_back_tokens_ = 0;
  const uint64_t shard_size_bytes_;
  ShardOutput* const output_;
  std::optional<ShardWriter> shard_;
  ShardSetSummary summary_;
  Sha256 content_;
  std::vector<Chunk> chunks_;
  uint64_t chunks_pushed_ = 0, chunks_written_ = 0, dropped_in_frames_ = 0, dropped_in_shard_ = 0;
  OrderedWorkers<Job, Done> workers_;
};

}  // namespace trainwright
