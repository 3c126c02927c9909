/// One contrastive record on its way into a chunk: it goes there whole, whatever its length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/formats/shard.h"
#include "lib/formats/token_stream.h"

namespace trainwright {

/// Collects the pieces of one record and lays its texts end to end. Not thread-safe.
class ContrastiveItem {
 public:
  void Clear();
  void Add(const DocumentPiece& piece);
  uint64_t tokens() const { return tokens_.size(); }

  /// Makes the record fit by taking tokens off the ends of its longest texts: each keeps its first L tokens,
  /// its instruction and one token more at least, with the largest L that does. What is still to come of a
  /// shortened text goes too. Doing so early, on a part of the record, changes nothing of the end result.
  /// \returns false when even the shortest texts do not fit
  bool ShortenTo(uint64_t most_tokens);
  /// Tokens that ShortenTo took, and what came after them, since Clear.
  uint64_t tokens_dropped() const { return tokens_dropped_; }

  std::span<const uint32_t> ids() const { return tokens_; }
  std::vector<Segment> Segments() const;

 private:
  struct Text {
    TextRole role;
    uint64_t instruction_tokens = 0, tokens = 0;
    uint64_t instruction_bytes = 0, pooled_bytes = 0;  ///< of source text
    bool shortened = false;
    uint64_t least() const { return std::min(tokens, instruction_tokens + 1); }
  };

  std::vector<uint32_t> tokens_;
  std::vector<Text> texts_;
  uint64_t tokens_dropped_ = 0;
  uint64_t level_ = UINT64_MAX;  // the L of the part so far: what follows can only lower it
};

}  // namespace trainwright
