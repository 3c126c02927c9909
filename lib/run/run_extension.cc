#include "lib/run/run_extension.h"

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"
#include "lib/run/schedule_shares.h"

namespace trainwright {
namespace {

/// Whether the learning rate of a step depends on how many there are.
bool IsShapedByTheEnd(ScheduleKind kind) {
  return kind != ScheduleKind::kConstant && kind != ScheduleKind::kWsd;
}

/// Gives the shares of the schedule their part of the new length.
/// \param is_replanned whether steps that were taken may have been others in the longer run; else the warm-up
///     stays, and so does a decay that the run is in then, too
void ShareLength(const ScheduleShares& shares, bool is_replanned, int64_t steps_taken,
                 ScheduleOptions* schedule) {
  if (is_replanned) return TakeShares(shares, schedule);
  if (!shares.usual_decay) return;
  const int64_t decay_steps = UsualDecaySteps(*schedule);
  if (steps_taken <= schedule->total_steps - decay_steps) schedule->decay_steps = decay_steps;
}

}  // namespace

std::vector<std::string> ExtendRun(const TrainSettings& settings,
                                   const std::function<EpochCounts(const TrainPlan&)>& count_epoch,
                                   int64_t steps_taken, TrainPlan* plan) {
  const std::string rule = LengthRule(settings);
  ScheduleOptions& schedule = plan->schedule;
  const int64_t before = schedule.total_steps;
  if (rule.empty() || rule == plan->length_rule || settings.steps == before) return {};
  const int64_t steps = settings.steps ? *settings.steps : StepsOf(settings, count_epoch(*plan), *plan);
  const std::string flag = "--" + rule.substr(0, rule.find(' '));
  if (steps < before) {
    throw Error(ErrorCode::kUsage, flag,
                rule.substr(rule.find(' ') + 1) + " differs from the run's " + std::to_string(before) +
                    " steps (" + plan->length_rule + "), and a run cannot be made shorter",
                "", "leave out " + flag + ", or start another run with --branch-from");
  }
  if (steps > before && IsShapedByTheEnd(schedule.kind) && !settings.replan_schedule) {
    throw Error(ErrorCode::kUsage, flag,
                std::to_string(steps) + " steps are more than the run's " + std::to_string(before) +
                    ", and its " + ScheduleKindName(schedule.kind) + " schedule ends with it",
                "", "add --replan-schedule: the steps to come follow the schedule of the longer run");
  }
  const ScheduleOptions shorter = schedule;
  schedule.total_steps = steps;
  plan->length_rule = rule;
  if (steps == before) return {};
  ShareLength(plan->shares, settings.replan_schedule, steps_taken, &schedule);
  std::vector<std::string> notes = {"the run goes on to step " + std::to_string(steps) + " instead of " +
                                    std::to_string(before)};
  const double now = LearningRate(schedule, steps_taken);
  if (steps_taken > 0 && now != LearningRate(shorter, steps_taken - 1)) {
    notes.back() += ", and its learning rate from " +
                    nlohmann::json(LearningRate(shorter, steps_taken - 1)).dump() + " to " +
                    nlohmann::json(now).dump();
  }
  return notes;
}

}  // namespace trainwright
