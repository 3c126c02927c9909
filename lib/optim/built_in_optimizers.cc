#include "lib/optim/adamw.h"
#include "lib/optim/optimizer_registry.h"

namespace trainwright {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerRegistry& registry, FlatParameters* parameters,
                                         OptimizerOptions options, uint64_t seed) {
  const OptimizerKind& kind = registry.Find(options.name);
  options.own = WithDefaults(options.own, kind.description.defaults.own, ErrorCode::kBadInput,
                             "the optimizer " + kind.name());
  std::unique_ptr<Optimizer> optimizer = kind.make(parameters, options, seed);
  if (options.average_decay > 0) optimizer->KeepAverage(options.average_decay);
  return optimizer;
}

OptimizerRegistry BuiltInOptimizers() {
  OptimizerRegistry registry("optimizer");
  registry.Add(AdamWKind());
  return registry;
}

}  // namespace trainwright
