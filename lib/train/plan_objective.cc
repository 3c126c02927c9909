#include "lib/train/plan_objective.h"

#include <string>

#include "lib/base/error.h"

namespace trainwright {

std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry) {
  return MakeObjective(registry, {.name = plan.objective,
                                  .loss_on = plan.loss_on,
                                  .z_loss = plan.loss_addends.z_loss,
                                  .label_smoothing = plan.loss_addends.label_smoothing,
                                  .own = plan.objective_own});
}

std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry,
                                       RecordKind records) {
  if (!registry.Find(plan.objective).Takes(records)) {
    throw Error(ErrorCode::kBadInput, "the shards",
                "hold " + RecordKindName(records) + " records, which the objective " + plan.objective +
                    " does not take");
  }
  return ObjectiveOf(plan, registry);
}

}  // namespace trainwright
