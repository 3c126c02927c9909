/// How long a step of several ranks takes, and what of it is communication.
#pragma once

#include <cstdint>

#include "lib/scaling/link.h"
#include "lib/scaling/pass_costs.h"
#include "lib/scaling/rank_plan.h"
#include "lib/scaling/traffic.h"

namespace trainwright {

/// World::Reduce and World::Agree of a step, and of the sums of its losses and of its norm.
inline constexpr int64_t kSmallExchanges = 5;
inline constexpr int64_t kSmallExchangeBytes = 64;

/// What a rank computes in a step.
struct StepCosts {
  PassCosts passes_s = {};  ///< of a micro-batch; a total of 0: not known
  double update_s = 0;      ///< of all weights, by one rank
};

struct StepEstimate {
  Traffic gradients = {}, weights = {}, small = {};  ///< of a step
  Traffic gathered = {};                             ///< of RankPlan::gathered_bytes
  double link_s = 0;                                 ///< the link is busy
  double hidden_s = 0;                               ///< of that, after a backward pass
  double step_s = 0;                                 ///< 0: not known
  double alone_s = 0;  ///< of one rank's samples in a world of one, which updates all weights; 0: not known

  Traffic sent() const {
    Traffic all = gradients;
    all += weights;
    all += small;
    all += gathered;
    return all;
  }
  /// Samples a second, over those of as many ranks that need not wait for each other; 0: not known.
  double efficiency() const { return step_s > 0 ? alone_s / step_s : 0; }
};

/// Gradients travel in fp32: a sum over a ring to all ranks, or, where owners of blocks add them up, each
/// rank's to the owners and, not sharded, the sums to all. Sharded, the new weights then go from their owners
/// to all, which nothing hides, and nothing hides what is gathered before the backward passes.
StepEstimate EstimateStep(const RankPlan& plan, const Link& link, const StepCosts& costs);

}  // namespace trainwright
