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

#include "lib/spec/range_plan.h"

namespace trainwright {

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

/// Where buckets lie in the flat buffer.
/// \param buckets as CutIntoBuckets returns them: from the end of `elements` on
std::vector<ElementRange> RangesOf(const std::vector<GradientBucket>& buckets, int64_t elements);

/// Of a bucket of fp32 gradients, at most.
/// \param bucket_bytes that are asked for
/// \param by_owners whether each rank adds up its blocks of what all ranks have, as exact leaves and sharded
///     parameters need it: then all have equally many of a full bucket
int64_t BucketElements(int64_t bucket_bytes, int64_t ranks, bool by_owners);

}  // namespace trainwright
