#include "lib/optim/adamw.h"
#include "lib/optim/optimizer_registry.h"

namespace trainwright {

OptimizerRegistry BuiltInOptimizers() {
  OptimizerRegistry registry("optimizer");
  registry.Add(AdamWKind());
  return registry;
}

}  // namespace trainwright
