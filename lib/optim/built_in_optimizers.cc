#include <memory>
#include <string>

#include "lib/optim/adamw.h"
#include "lib/optim/adamw_8bit.h"
#include "lib/optim/lion.h"
#include "lib/optim/muon.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/sgd.h"

namespace trainwright {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerRegistry& registry, FlatParameters* parameters,
                                         OptimizerOptions options, uint64_t seed) {
  const OptimizerKind& kind = registry.Find(options.name);
  const OptimizerDescription& description = kind.description;
  const std::string whose = "the optimizer " + kind.name();
  options.own = WithDefaults(options.own, description.defaults.own, ErrorCode::kBadInput, whose);
  if (!description.own.empty()) {
    options.own = WithDescribed(options.own, description.own, ErrorCode::kBadInput, whose);
  }
  std::unique_ptr<Optimizer> optimizer = kind.make(parameters, options, seed);
  if (options.average_decay > 0) optimizer->KeepAverage(options.average_decay);
  return optimizer;
}

OptimizerRegistry BuiltInOptimizers() {
  OptimizerRegistry registry("optimizer");
  registry.Add(AdamWKind());
  registry.Add(SgdKind());
  registry.Add(LionKind());
  registry.Add(MuonKind());
  registry.Add(AdamW8BitKind());
  return registry;
}

}  // namespace trainwright
