/// The objectives that a program knows, by the names that plans use.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/registry.h"
#include "lib/objective/objective.h"
#include "lib/spec/objective_description.h"

namespace trainwright {

struct ObjectiveKind {
  ObjectiveDescription description;
  /// Called by MakeObjective, with all its own options.
  std::function<std::unique_ptr<Objective>(const ObjectiveOptions&)> make;

  const std::string& name() const { return description.name; }
  bool Takes(RecordKind kind) const { return description.FindRecords(kind) != nullptr; }
};

using ObjectiveRegistry = Registry<ObjectiveKind>;

/// Makes the objective that a plan names. Own options that it does not say have their defaults.
/// \throws Error{kUsage} on a name that the registry does not hold; Error{kBadInput} on own options that the
///     objective does not have
std::unique_ptr<Objective> MakeObjective(const ObjectiveRegistry& registry, ObjectiveOptions options);

/// Those of this library: lm, sft, grit.
ObjectiveRegistry BuiltInObjectives();

}  // namespace trainwright
