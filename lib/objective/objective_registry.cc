#include "lib/objective/objective_registry.h"

#include <algorithm>

#include "lib/objective/lm_objective.h"

namespace trainwright {

bool ObjectiveKind::Takes(RecordKind kind) const {
  return std::find(description.records.begin(), description.records.end(), kind) != description.records.end();
}

ObjectiveRegistry BuiltInObjectives() {
  ObjectiveRegistry registry("objective");
  registry.Add(LmObjectiveKind());
  registry.Add(SftObjectiveKind());
  return registry;
}

}  // namespace trainwright
