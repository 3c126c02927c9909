/// What a whole set of shards amounts to, for reports: `pack` prints it when it is done, `pack --info` of
/// what is there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/formats/shard.h"

namespace trainwright {

struct ShardSetSummary {
  ShardSetHeader header;  ///< without the tokenizer's model
  ShardTotals totals;
  uint64_t shards = 0;
  uint64_t size_bytes = 0;    ///< of all shards
  uint64_t frames_bytes = 0;  ///< of their compressed frames alone: without headers, tokenizer and indices
  Sha256Digest content_sha256{};
  /// By windows that overlap; unknown unless the chunks were looked at.
  std::optional<uint64_t> tokens_repeated = {};

  /// Counts one more shard; content_sha256 stays as it is.
  void AddShard(const ShardInfo& shard);
  /// Compressed bits of the frames for each token that is not padding; 0 without tokens.
  double bits_per_token() const;
  /// Shares in [0, 1]; 0 of nothing.
  double padding_share() const;
  double cut_share() const;
};

/// The object that `pack --info --json` prints and `pack --summary` holds.
nlohmann::ordered_json ToJson(const ShardSetSummary& summary);

/// "7,473 documents (0.12 % cut) in 66 chunks of 32768 tokens (0.04 % padding), 0 tokens dropped, 7.61
/// bits/token"
std::string OneLine(const ShardSetSummary& summary);

/// A table of several lines for people.
std::string Describe(const ShardSetSummary& summary);

}  // namespace trainwright
