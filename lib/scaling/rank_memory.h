/// Where the memory of one of several ranks is.
#pragma once

#include <cstdint>

#include "lib/scaling/rank_plan.h"
#include "lib/spec/memory_parts.h"

namespace trainwright {

/// Bytes.
struct RankMemory {
  MemoryParts parts = {};  ///< as of a run alone, those that are sharded smaller; no exchange
  int64_t exchange = 0;    ///< gradients and new weights that are packed for other ranks, and theirs
  int64_t leaf_sums = 0;   ///< sums of leaves that wait for their neighbours; see RankPlan::exact_leaves

  int64_t of_model() const { return parts.of_model() + exchange + leaf_sums; }
  int64_t total() const { return of_model() + parts.of_host(); }
  bool operator==(const RankMemory&) const = default;
};

/// Of the rank that has most.
/// \param alone what the run takes in one process, with the same micro-batches
RankMemory MemoryOfRank(const MemoryParts& alone, const RankPlan& plan);

}  // namespace trainwright
