/// The optimizers that a program knows, by the names that plans use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/base/registry.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/optimizer.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

struct OptimizerKind {
  OptimizerDescription description;
  /// Called by MakeOptimizer, with all its own options.
  /// \param parameters as of Optimizer; on torch's meta device, for sizes alone, too
  /// \param seed of what the optimizer draws
  std::function<std::unique_ptr<Optimizer>(FlatParameters* parameters, const OptimizerOptions& options,
                                           uint64_t seed)>
      make;

  const std::string& name() const { return description.name; }
};

using OptimizerRegistry = Registry<OptimizerKind>;

/// Makes the optimizer that a plan names. Own options that it does not say have their defaults.
/// \throws Error{kUsage} on a name that the registry does not hold; Error{kBadInput} on own options that the
///     optimizer does not have, or not with this value
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerRegistry& registry, FlatParameters* parameters,
                                         OptimizerOptions options, uint64_t seed);

/// Those of this library: adamw, sgd, lion, muon and adamw8bit.
OptimizerRegistry BuiltInOptimizers();

}  // namespace trainwright
