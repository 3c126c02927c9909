#include "lib/scaling/rank_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/spec/gradient_buckets.h"

namespace trainwright {
namespace {

/// What `elements` of all take of a part.
int64_t ShareOf(int64_t part_bytes, int64_t elements, int64_t all) {
  if (all == 0) return part_bytes;
  const double element_bytes = static_cast<double>(part_bytes) / static_cast<double>(all);
  return std::min<int64_t>(part_bytes, std::llround(element_bytes * static_cast<double>(elements)));
}

}  // namespace

RankMemory MemoryOfRank(const MemoryParts& alone, const RankPlan& plan) {
  RankMemory memory = {.parts = alone};
  memory.parts.exchange = 0;  // of a run alone, sums of its leaves; a rank's are told by themselves
  if (const int64_t leaves = plan.exact_leaves / plan.ranks; leaves > 1) {
    memory.leaf_sums = (std::bit_width(static_cast<uint64_t>(leaves)) - 1) * alone.gradients;
  }
  if (plan.ranks == 1) return memory;
  MemoryParts& parts = memory.parts;
  const int64_t all = plan.elements(), own = plan.shard_elements();
  const auto shard = [&](int64_t* part_bytes) { *part_bytes = ShareOf(*part_bytes, own, all); };
  if (plan.sharding != Sharding::kNone) {
    shard(&parts.optimizer);
    parts.snapshot = 0;            // the ranks send their parts of a checkpoint as it is written
    if (parts.compute_copy > 0) {  // else the passes read them
      parts.parameters =
          ShareOf(alone.parameters, own, all) + ShareOf(alone.parameters, plan.fp32_copied_elements, all);
    }
  }
  if (plan.gives_gradients_away()) {
    const auto largest = std::max_element(plan.segment_elements.begin(), plan.segment_elements.end());
    const int64_t at_work = largest == plan.segment_elements.end() ? 0 : *largest;
    parts.gradients = ShareOf(parts.gradients, std::min(all, own + at_work), all);
  }
  if (plan.sharding != Sharding::kNone || plan.exact_leaves > 0) {
    memory.exchange = 2 * std::min(kBucketsUnderWay * plan.bucket_bytes, alone.gradients);
  }
  return memory;
}

}  // namespace trainwright
