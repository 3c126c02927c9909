/// A pass over some chunks of a shard set in stored order.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/formats/shard_set.h"

namespace trainwright {

/// Whole frames of a set: all of it, or a part of it.
struct ChunkRange {
  uint64_t first_chunk = 0, chunks = 0;
};

/// Calls visit(number, chunk) for each chunk, until it says that it wants no more. Each frame is read once.
/// \param skip_bad whether frames that cannot be read are left out
/// \param visit returns whether it wants more
/// \returns how many frames were left out
/// \throws what reading the shards throws; Error{kInterrupted, kTerminated} after a stop signal; what `visit`
///     throws
uint64_t VisitChunks(const ShardSet& set, const ChunkRange& range, bool skip_bad,
                     const std::function<bool(uint64_t, const Chunk&)>& visit);

}  // namespace trainwright
