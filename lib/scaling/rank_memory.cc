#include "lib/scaling/rank_memory.h"

#include <bit>
#include <cmath>

#include "lib/spec/exchange_memory.h"

namespace trainwright {
namespace {

/// What `elements` of all take of a part.
int64_t ShareOf(int64_t part_bytes, int64_t elements, int64_t all) {
  if (all == 0) return part_bytes;
  const double element_bytes = static_cast<double>(part_bytes) / static_cast<double>(all);
  return std::llround(element_bytes * static_cast<double>(elements));
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
          ShareOf(alone.parameters, own, all) + ShareOf(alone.parameters, plan.fp32_copied_elements(), all);
    }
  }
  if (plan.gives_gradients_away()) {
    parts.gradients = ShareOf(parts.gradients, own + plan.elements_at_work(), all);
  }
  if (plan.sums_by_owners()) {
    memory.exchange = GradientExchangeBytes(plan.gradient_parts(), plan.ranks, plan.sums_of());
  }
  memory.exchange += ValueExchangeBytes(plan.weight_parts(), plan.ranks, plan.weight_bytes) +
                     ValueExchangeBytes(plan.fp32_copy_parts(), plan.ranks, sizeof(float));
  return memory;
}

}  // namespace trainwright
