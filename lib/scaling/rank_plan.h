/// How a step is divided among the ranks of a run.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "lib/spec/exchange_memory.h"
#include "lib/spec/gradient_buckets.h"
#include "lib/spec/range_plan.h"
#include "lib/spec/shard_layout.h"
#include "lib/spec/sharding.h"

namespace trainwright {

struct RankPlan {
  int64_t ranks = 1;
  Sharding sharding = Sharding::kNone;
  ZeroAccumulation accumulation = ZeroAccumulation::kKeep;
  int64_t accum = 1;                         ///< micro-batches of a step, of a rank
  int64_t bucket_bytes = int64_t{25} << 20;  ///< of fp32 gradients that travel together, as asked for
  int64_t exact_leaves = 0;                  ///< of a step, which are added as one tree; 0: no order is kept
  int64_t weight_bytes = 4;                  ///< of an element as the passes read it
  /// Trained, that the passes read in fp32 beside a copy in reduced precision: whole on all ranks. In the
  /// order of the flat buffer.
  std::vector<ElementRange> fp32_copies = {};
  std::vector<int64_t> segment_elements = {};  ///< trained, in the order of the flat buffer
  /// What a rank gives to all others in a step before the backward passes, one a gather.
  std::vector<int64_t> gathered_bytes = {};

  int64_t elements() const {
    return std::accumulate(segment_elements.begin(), segment_elements.end(), int64_t{0});
  }
  int64_t fp32_copied_elements() const;
  bool is_sharded() const { return ranks > 1 && sharding != Sharding::kNone; }
  /// Whether each rank adds up its blocks of what all ranks have: see GradientExchange (lib/dist).
  bool sums_by_owners() const { return ranks > 1 && (is_sharded() || exact_leaves > 0); }
  SumsOf sums_of() const { return is_sharded() ? SumsOf::kOwners : SumsOf::kAll; }
  int64_t bucket_elements() const { return BucketElements(bucket_bytes, ranks, sums_by_owners()); }
  /// What of gradients travels together, in that order.
  std::vector<PartSize> gradient_parts() const;
  /// Likewise what of new weights does, as the passes read them, and of those that they read in fp32 besides.
  /// None where they are not sharded.
  std::vector<PartSize> weight_parts() const;
  std::vector<PartSize> fp32_copy_parts() const;
  /// Whose gradients are in memory at once where they are sharded: those of all segments that lie in a
  /// bucket, whole or in part.
  int64_t elements_at_work() const;
  /// Of the rank that has most.
  int64_t shard_elements() const { return ShardLayout(elements(), /*rank=*/0, ranks).size(); }
  bool gives_gradients_away() const {
    return GivesGradientsAway(sharding, accumulation, accum, exact_leaves > 0);
  }
};

}  // namespace trainwright
