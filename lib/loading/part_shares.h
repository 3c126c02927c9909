/// A pass over some of the tokens of a set that was made of several: of each part its share.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/formats/shard.h"
#include "lib/formats/shard_set.h"

namespace trainwright {

struct SharedPass {
  std::vector<ShardSetPart> parts;  ///< of the set
  uint64_t max_tokens = 0;          ///< in all, about; 0: all that they hold
  bool skip_bad = false;            ///< leave out frames that cannot be read
};

/// Calls use(part, chunk) with the chunks of each part in stored order, until it has had its share of
/// `max_tokens`: by the tokens that it holds of those of all parts. A part goes on to the end of the chunk
/// that reaches its share, at least to the first chunk of which something was used, and takes what those
/// before it have left; so of a single part it is the beginning.
/// \param tokens_used says how many tokens were used so far, from 0 on; `use` need not use all of a chunk
/// \returns how many frames were left out
/// \throws as VisitChunks, and what `use` throws
uint64_t VisitShares(const ShardSet& set, const SharedPass& pass,
                     const std::function<uint64_t()>& tokens_used,
                     const std::function<void(const ShardSetPart&, const Chunk&)>& use);

}  // namespace trainwright
