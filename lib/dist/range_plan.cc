#include "lib/dist/range_plan.h"

#include <algorithm>
#include <numeric>

#include "lib/spec/reduction_block.h"

namespace trainwright {

int64_t RangePlan::elements() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

RangePlan PlanRanges(const std::vector<ElementRange>& ranges, int64_t ranks) {
  RangePlan plan;
  plan.counts.resize(static_cast<size_t>(ranks));
  for (const ElementRange& range : ranges) {
    for (int64_t begin = range.begin; begin < range.end;) {
      const int64_t block = begin / kReductionBlock;
      const int64_t size = std::min(range.end, (block + 1) * kReductionBlock) - begin;
      int64_t& count = plan.counts[static_cast<size_t>(block % ranks)];
      plan.pieces.push_back({.begin = begin, .owner = block % ranks, .place = count, .size = size});
      count += size;
      begin += size;
    }
  }
  plan.most = *std::max_element(plan.counts.begin(), plan.counts.end());
  return plan;
}

}  // namespace trainwright
