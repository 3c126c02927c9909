/// The objectives that a program knows, by the names that plans use.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/registry.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/objective/objective.h"
#include "lib/spec/objective_description.h"
#include "lib/spec/own_options.h"

namespace trainwright {

struct ObjectiveKind {
  ObjectiveDescription description;
  /// Called by MakeObjective, with all its own options.
  std::function<std::unique_ptr<Objective>(const ObjectiveOptions&)> make;
  /// The own options by which it measures a model that no run of it made, from how the model's folder says
  /// that texts are embedded. Empty: the defaults.
  std::function<OwnOptions(const EmbeddingSpec&)> own_of_folder = {};

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
