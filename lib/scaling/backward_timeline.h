/// How long the exchange of gradients goes on after the backward pass that makes them.
#pragma once

#include <algorithm>
#include <vector>

#include "lib/spec/gradient_buckets.h"

namespace trainwright {

/// Seconds since the backward pass began.
struct BackwardTimeline {
  double backward_s = 0;  ///< the pass ends
  double link_s = 0;      ///< the link is busy, in all
  double end_s = 0;       ///< the last bucket is through; at least backward_s

  double exposed_s() const { return end_s - backward_s; }                  ///< that the ranks wait
  double hidden_s() const { return std::max(0.0, link_s - exposed_s()); }  ///< of the link, after the pass
};

/// Segments are done from the last to the first. A bucket begins once its segments are done and the bucket
/// before it is through: there is one link. The last bucket has gradients that the pass makes at its end, so
/// it is never hidden.
/// \param segment_s the pass's time for each segment, in the order of the flat buffer; what comes before the
///     last segment is done counts as its own
/// \param bucket_s of each bucket on the link
BackwardTimeline FollowBackward(const std::vector<double>& segment_s,
                                const std::vector<GradientBucket>& buckets,
                                const std::vector<double>& bucket_s);

}  // namespace trainwright
