/// How a step is divided among the ranks of a run.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace trainwright {

/// What of the state a rank keeps only its part of. \source Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054
enum class Sharding {
  kNone,       ///< nothing: data parallel
  kOptimizer,  ///< stage 1: the optimizer's moments, and masters beside a copy in a short type
  kGradients,  ///< stage 2: and the gradients
};

/// Elements of the flat buffers that belong to one rank together: block b is rank b % ranks'.
inline constexpr int64_t kShardBlockElements = 65536;

struct RankPlan {
  int64_t ranks = 1;
  Sharding sharding = Sharding::kNone;
  /// kGradients: each micro-batch's gradients are given away after its passes; else a whole buffer adds up
  /// those of a step.
  bool reduces_each_micro_batch = false;
  int64_t accum = 1;                         ///< micro-batches of a step, of a rank
  int64_t bucket_bytes = int64_t{25} << 20;  ///< of fp32 gradients that travel together
  int64_t exact_leaves = 0;                  ///< of a step, which are added as one tree; 0: no order is kept
  std::vector<int64_t> segment_elements = {};  ///< trained, in the order of the flat buffer

  int64_t elements() const {
    return std::accumulate(segment_elements.begin(), segment_elements.end(), int64_t{0});
  }
  int64_t bucket_elements() const { return bucket_bytes < 4 ? 1 : bucket_bytes / 4; }
  /// Of a rank that has most.
  int64_t shard_elements() const {
    const int64_t blocks = (elements() + kShardBlockElements - 1) / kShardBlockElements;
    const int64_t own = (blocks + ranks - 1) / ranks * kShardBlockElements;
    return own < elements() ? own : elements();
  }
  /// Whether the gradients of a micro-batch leave before those of the next one come.
  bool gives_gradients_away() const {
    return sharding == Sharding::kGradients && (reduces_each_micro_batch || accum == 1);
  }
};

}  // namespace trainwright
