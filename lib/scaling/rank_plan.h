/// How a step is divided among the ranks of a run.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "lib/spec/shard_layout.h"
#include "lib/spec/sharding.h"

namespace trainwright {

struct RankPlan {
  int64_t ranks = 1;
  Sharding sharding = Sharding::kNone;
  ZeroAccumulation accumulation = ZeroAccumulation::kKeep;
  int64_t accum = 1;                         ///< micro-batches of a step, of a rank
  int64_t bucket_bytes = int64_t{25} << 20;  ///< of fp32 gradients that travel together
  int64_t exact_leaves = 0;                  ///< of a step, which are added as one tree; 0: no order is kept
  /// Trained, that the passes read in fp32 beside a copy in a short type: whole on all ranks.
  int64_t fp32_copied_elements = 0;
  std::vector<int64_t> segment_elements = {};  ///< trained, in the order of the flat buffer

  int64_t elements() const {
    return std::accumulate(segment_elements.begin(), segment_elements.end(), int64_t{0});
  }
  int64_t bucket_elements() const { return bucket_bytes < 4 ? 1 : bucket_bytes / 4; }
  /// Of the rank that has most.
  int64_t shard_elements() const { return ShardLayout(elements(), /*rank=*/0, ranks).size(); }
  bool gives_gradients_away() const {
    return GivesGradientsAway(sharding, accumulation, accum, exact_leaves > 0);
  }
};

}  // namespace trainwright
