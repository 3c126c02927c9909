/// Saving what is left of damaged shards: `pack --repair`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/packing/shard_set_summary.h"
#include "lib/packing/shard_set_writer.h"

namespace trainwright {

struct RepairOptions {
  std::string input;   ///< a file of shards, or a folder, sealed or not; never written to
  std::string output;  ///< as in OpenShardOutput
  bool allow_terminal = false;
  ShardSetWriterOptions writer;  ///< `remap` is that of the input
};

struct RepairReport {
  ShardSetSummary set;  ///< what was saved
  /// Those between and after what was saved, as far as anything counts them.
  uint64_t chunks_lost = 0;
  bool end_known = false;  ///< else the index that counts the last chunks is lost, and more may be
  /// Documents that start in lost chunks; nullopt when nothing that is left counts them.
  std::optional<uint64_t> documents_lost;
  bool tokenizer_lost = false;            ///< the shard that carried the tokenizer's model is gone
  uint64_t damages = 0;                   ///< places that could not be read
  std::vector<std::string> damage_lines;  ///< the first kMaxDamageLines of them, with their places

  bool sound() const { return chunks_lost == 0 && end_known && damages == 0; }
};

inline constexpr size_t kMaxDamageLines = 20;

/// Walks the frames of every shard, also past what cannot be read, and packs those that verify into a new,
/// sealed set. A frame verifies when its checksum and its structure are right, and its hash where an index
/// still reports it. Chunks keep their order and lose their numbers. Memory: one frame, and the writer's.
/// \throws Error{kBadInput} when no chunk can be saved; Error{kUsage} when the output would touch the input;
///         Error{kIo}
RepairReport RepairShards(const RepairOptions& options);
/// The same into an output that is open already; `options.output` goes unread.
RepairReport RepairShardsInto(const RepairOptions& options, ShardOutput* output);

}  // namespace trainwright
