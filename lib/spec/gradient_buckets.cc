#include "lib/spec/gradient_buckets.h"

#include <algorithm>

#include "lib/base/error.h"

namespace trainwright {

std::vector<GradientBucket> CutIntoBuckets(const std::vector<int64_t>& segment_elements,
                                           int64_t bucket_elements) {
  TRAINWRIGHT_CHECK(bucket_elements >= 1);
  std::vector<GradientBucket> buckets;
  for (size_t segment = segment_elements.size(); segment-- > 0;) {
    int64_t left = segment_elements[segment];
    if (left > 0 && !buckets.empty() && buckets.back().elements + left <= bucket_elements) {
      buckets.back().elements += left;
      buckets.back().lowest_segment = segment;
      left = 0;
    }
    while (left > 0) {
      const int64_t piece = std::min(left, bucket_elements);
      buckets.push_back({.elements = piece, .lowest_segment = segment});
      left -= piece;
    }
  }
  return buckets;
}

std::vector<ElementRange> RangesOf(const std::vector<GradientBucket>& buckets, int64_t elements) {
  std::vector<ElementRange> ranges;
  int64_t end = elements;
  for (const GradientBucket& bucket : buckets) {
    ranges.push_back({.begin = end - bucket.elements, .end = end});
    end = ranges.back().begin;
  }
  return ranges;
}

int64_t BucketElements(int64_t bucket_bytes, int64_t ranks, bool by_owners) {
  const int64_t elements = std::max<int64_t>(1, bucket_bytes / static_cast<int64_t>(sizeof(float)));
  return by_owners && ranks > 1 ? WholeRounds(elements, ranks) : elements;
}

}  // namespace trainwright
