#include "lib/run/resumed_plan.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// Takes over another split of the step.
/// \returns warnings
/// \throws Error{kUsage} on a step of another size
std::vector<std::string> SplitStep(const TrainSettings& settings, TrainPlan* plan) {
  const int64_t samples = plan->samples_per_step();
  const int64_t batch = settings.batch.value_or(
      settings.accum && *settings.accum > 0 ? samples / *settings.accum : plan->batch);
  const int64_t accum = settings.accum.value_or(batch > 0 ? samples / batch : 0);
  if (batch < 1 || accum < 1 || batch * accum != samples) {
    throw Error(ErrorCode::kUsage, "--batch, --accum",
                "do not make the run's " + std::to_string(samples) + " samples a step", "",
                "a resumed run may split its step otherwise, but not change its size");
  }
  if (batch == plan->batch) return {};
  const std::string before = std::to_string(plan->batch);
  plan->batch = batch;
  plan->accum = accum;
  return {"micro-batches of " + std::to_string(batch) + " samples instead of the run's " + before +
          ": the same sums in another order, so results differ by rounding"};
}

}  // namespace

std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan,
                                       const PlanTable& table) {
  for (const PlanOption& option : table) {
    if (option.free_on_resume) continue;
    const std::optional<PlanDifference> difference = DifferenceOf(option, settings, *plan);
    if (!difference) continue;
    const std::string flag = "--" + difference->option;
    throw Error(ErrorCode::kUsage, flag, difference->asked + " differs from the run's " + difference->stored,
                "",
                "a resumed run continues its plan: leave out " + flag + ", or start another run with --out");
  }
  return SplitStep(settings, plan);
}

}  // namespace trainwright
