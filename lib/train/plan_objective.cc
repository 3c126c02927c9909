#include "lib/train/plan_objective.h"

#include <string>

#include "lib/base/error.h"

namespace trainwright {

std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry) {
  return MakeObjective(registry, {.name = plan.objective,
                                  .loss_on = plan.loss_on,
                                  .z_loss = plan.loss_addends.z_loss,
                                  .label_smoothing = plan.loss_addends.label_smoothing,
                                  .own = plan.objective_own,
                                  .seed = plan.seed});
}

std::unique_ptr<Objective> ObjectiveOf(const TrainPlan& plan, const ObjectiveRegistry& registry,
                                       const std::set<RecordKind>& records) {
  if (!registry.Find(plan.objective).description.TakesAll(records)) {
    throw Error(ErrorCode::kBadInput, "the shards",
                "hold " + RecordKindNames(records) + " records, which the objective " + plan.objective +
                    " does not take");
  }
  return ObjectiveOf(plan, registry);
}

std::vector<MemoryLever> ObjectiveLevers(const TrainPlan& plan, const ObjectiveRegistry& registry) {
  const ObjectiveDescription& objective = registry.Find(plan.objective).description;
  return objective.memory_levers ? objective.memory_levers(plan.objective_own) : std::vector<MemoryLever>();
}

StepShape ShapeOfStep(const TrainPlan& plan) {
  return {.samples_of_rank = plan.samples_per_rank(),
          .samples_of_step = plan.samples_per_step(),
          .ranks = plan.ranks,
          .micro_batch = plan.batch};
}

}  // namespace trainwright
