#include "lib/scaling/rank_plan.h"

#include <algorithm>

namespace trainwright {

int64_t RankPlan::fp32_copied_elements() const {
  int64_t copied = 0;
  for (const ElementRange& range : fp32_copies) copied += range.size();
  return copied;
}

int64_t RankPlan::elements_at_work() const {
  int64_t most = 0, end = elements();  // of what is left
  size_t last = segment_elements.size();
  int64_t last_end = end;  // of the segments before `last`
  for (const GradientBucket& bucket : CutIntoBuckets(segment_elements, bucket_elements())) {
    while (last_end - segment_elements[last - 1] >= end) last_end -= segment_elements[--last];
    const auto first = segment_elements.begin() + static_cast<ptrdiff_t>(bucket.lowest_segment);
    most = std::max(
        most, std::accumulate(first, segment_elements.begin() + static_cast<ptrdiff_t>(last), int64_t{0}));
    end -= bucket.elements;
  }
  return most;
}

std::vector<PartSize> RankPlan::gradient_parts() const {
  std::vector<PartSize> parts;
  for (const ElementRange& range :
       RangesOf(CutIntoBuckets(segment_elements, bucket_elements()), elements())) {
    parts.push_back(SizeOfRange(range, ranks));
  }
  return parts;
}

std::vector<PartSize> RankPlan::weight_parts() const {
  std::vector<PartSize> parts;
  if (!is_sharded()) return parts;
  const int64_t all = elements(), most = WholeRounds(bucket_bytes / weight_bytes, ranks);
  for (int64_t begin = 0; begin < all; begin += most) {
    parts.push_back(SizeOfRange({.begin = begin, .end = std::min(all, begin + most)}, ranks));
  }
  return parts;
}

std::vector<PartSize> RankPlan::fp32_copy_parts() const {
  std::vector<PartSize> parts;
  if (!is_sharded()) return parts;
  for (const RangePlan& plan :
       PlanInParts(fp32_copies, WholeRounds(bucket_bytes / int64_t{sizeof(float)}, ranks), ranks)) {
    parts.push_back(plan.size());
  }
  return parts;
}

}  // namespace trainwright
