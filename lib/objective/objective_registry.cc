#include "lib/objective/objective_registry.h"

#include "lib/objective/grit_objective.h"
#include "lib/objective/lm_objective.h"

namespace trainwright {

std::unique_ptr<Objective> MakeObjective(const ObjectiveRegistry& registry, ObjectiveOptions options) {
  const ObjectiveKind& kind = registry.Find(options.name);
  options.own =
      WithDescribed(options.own, kind.description.own, ErrorCode::kBadInput, "the objective " + kind.name());
  return kind.make(options);
}

ObjectiveRegistry BuiltInObjectives() {
  ObjectiveRegistry registry("objective");
  registry.Add(LmObjectiveKind());
  registry.Add(SftObjectiveKind());
  registry.Add(GritObjectiveKind());
  return registry;
}

}  // namespace trainwright
