#include "lib/scaling/backward_timeline.h"

#include <algorithm>

#include "lib/base/error.h"

namespace trainwright {

BackwardTimeline FollowBackward(const std::vector<double>& segment_s,
                                const std::vector<GradientBucket>& buckets,
                                const std::vector<double>& bucket_s) {
  TRAINWRIGHT_CHECK(buckets.size() == bucket_s.size());
  std::vector<double> done_s(segment_s.size());
  BackwardTimeline timeline;
  for (size_t segment = segment_s.size(); segment-- > 0;) {
    timeline.backward_s += segment_s[segment];
    done_s[segment] = timeline.backward_s;
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    timeline.link_s += bucket_s[i];
    timeline.end_s = std::max(timeline.end_s, done_s.at(buckets[i].lowest_segment)) + bucket_s[i];
  }
  timeline.end_s = std::max(timeline.end_s, timeline.backward_s);
  return timeline;
}

}  // namespace trainwright
