/// The parts in which gradients travel between the ranks while the backward pass goes on.
///
/// The backward pass works from the head down, so the flat buffer of gradients is cut from its end to its
/// beginning: whole segments (GradientBuffer) together up to the size of a bucket, those that are larger in
/// pieces, of which the last may travel with the segments before it. GradientExchange
/// (lib/dist) cuts so, and so do the estimates of lib/scaling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright {

/// Buckets that are under way at once where each is packed and received apart: TreeAllReduce (lib/dist).
inline constexpr int64_t kBucketsUnderWay = 4;

struct GradientBucket {
  int64_t elements = 0;
  size_t lowest_segment = 0;  ///< once its gradients are done, all of the bucket's are

  bool operator==(const GradientBucket&) const = default;
};

/// \param segment_elements in the order of the flat buffer, the embeddings' first
/// \param bucket_elements at least 1
/// \returns buckets in the order in which they travel
std::vector<GradientBucket> CutIntoBuckets(const std::vector<int64_t>& segment_elements,
                                           int64_t bucket_elements);

}  // namespace trainwright
