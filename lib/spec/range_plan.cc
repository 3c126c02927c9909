#include "lib/spec/range_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/error.h"
#include "lib/spec/reduction_block.h"
#include "lib/spec/shard_layout.h"

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

std::vector<RangePlan> PlanInParts(const std::vector<ElementRange>& ranges, int64_t part_elements,
                                   int64_t ranks) {
  std::vector<RangePlan> plans;
  std::vector<ElementRange> part;
  int64_t elements = 0;
  const auto end_part = [&] {
    if (!part.empty()) plans.push_back(PlanRanges(std::exchange(part, {}), ranks));
    elements = 0;
  };
  for (const ElementRange& range : ranges) {
    for (int64_t begin = range.begin; begin < range.end;) {
      const int64_t size = std::min(range.end - begin, part_elements - elements);
      part.push_back({begin, begin + size});
      begin += size;
      elements += size;
      if (elements == part_elements) end_part();
    }
  }
  end_part();
  return plans;
}

PartSize SizeOfRange(const ElementRange& range, int64_t ranks) {
  TRAINWRIGHT_CHECK(range.size() > 0);
  const int64_t first = range.begin / kReductionBlock, last = (range.end - 1) / kReductionBlock;
  const auto own = [&](int64_t rank, int64_t end) { return ShardLayout(end, rank, ranks).size(); };
  PartSize size = {.elements = range.size()};
  // Only the first and the last block may be cut, so that no owner has more than one of these three.
  for (const int64_t block : {first, first + 1, last}) {
    const int64_t rank = block % ranks;
    size.most = std::max(size.most, own(rank, range.end) - own(rank, range.begin));
  }
  return size;
}

int64_t WholeRounds(int64_t elements, int64_t ranks) {
  const int64_t round = ranks * kReductionBlock;
  return std::max(round, elements / round * round);
}

}  // namespace trainwright
