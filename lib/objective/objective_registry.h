/// The objectives that a program knows, by the names that plans use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/registry.h"
#include "lib/formats/record_kind.h"
#include "lib/objective/objective.h"

namespace trainwright {

struct ObjectiveDescription {
  std::string name;  ///< of plans and files: "lm"
  /// That it takes; kinds beyond those of the formats are an objective's own.
  std::vector<RecordKind> records;
  std::map<std::string, double> own = {};  ///< the defaults of options that only it has, by name
};

struct ObjectiveKind {
  ObjectiveDescription description;
  std::function<std::unique_ptr<Objective>(const ObjectiveOptions&)> make;

  const std::string& name() const { return description.name; }
  bool Takes(RecordKind kind) const;
};

using ObjectiveRegistry = Registry<ObjectiveKind>;

/// Those of this library: lm, sft.
ObjectiveRegistry BuiltInObjectives();

}  // namespace trainwright
