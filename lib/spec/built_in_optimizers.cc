#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

OptimizerDescription AdamWDescription() {
  return {.name = kDefaultOptimizer,
          .defaults = {},
          .takes = {"beta1", "beta2", "epsilon", "weight_decay", "optimizer_states", "cycle_momentum"},
          .state_bytes =
              [](const OptimizerOptions& options, const TrainedSizes& sizes) {
                return OptimizerStateBytes(options.states, sizes.elements);
              },
          .shardable = true};
}

std::vector<OptimizerDescription> BuiltInOptimizerDescriptions() {
  return {AdamWDescription()};
}

}  // namespace trainwright
