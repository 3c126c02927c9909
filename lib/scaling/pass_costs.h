/// What the passes of a micro-batch cost, in operations or in seconds, by the segments of the gradients whose
/// end the backward pass shows.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/model_config.h"
#include "lib/spec/model_flops.h"

namespace trainwright {

struct PassCosts {
  double forward = 0;
  /// Of the backward pass, by segment in the order of the flat buffer: until its gradients are done, from
  /// when those of the segment after it were.
  std::vector<double> backward = {};

  double backward_total() const;
  double total() const { return forward + backward_total(); }
  /// The same shares of another total.
  PassCosts ScaledTo(double new_total) const;
};

/// The operations of lib/spec/model_flops.h, and those of layers that full recomputation repeats. Layers are
/// taken to be equal. Where there are not embeddings, layers and head (adapters are one segment), all
/// segments are done at the end.
/// \param segments at least 1
/// \throws Error{kUsage} as CountStepFlops
PassCosts CountPassFlops(const ModelConfig& config, const FineTuning& tuning,
                         ActivationCheckpointing checkpointing, const TokenCounts& counts, size_t segments);

}  // namespace trainwright
