#include "lib/run/schedule_planner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"
#include "lib/run/schedule_shares.h"

namespace trainwright {
namespace {

constexpr double kLoraLearningRate = 2e-4;

/// \throws Error{kUsage} on options that have no meaning beside each other
void CheckMeanings(const TrainSettings& settings, const ScheduleOptions& schedule) {
  const bool one_cycle = schedule.kind == ScheduleKind::kOneCycle;
  if (one_cycle && settings.min_lr_ratio) {
    throw Error(ErrorCode::kUsage, "--min-lr-ratio", "has no meaning with --schedule one-cycle", "",
                "one-cycle ends at a 250,000th of the peak; leave out one of the two");
  }
  if (settings.warmup && settings.warmup_ratio) {
    throw Error(ErrorCode::kUsage, "--warmup, --warmup-ratio", "exclude each other", "", "give one of them");
  }
  const auto only_with = [](bool given, bool holds, const char* flag, const char* schedule_name) {
    if (!given || holds) return;
    throw Error(ErrorCode::kUsage, flag, std::string("has a meaning only with --schedule ") + schedule_name);
  };
  only_with(settings.decay_steps.has_value(), schedule.kind == ScheduleKind::kWsd, "--decay-steps", "wsd");
  only_with(settings.cycle_momentum, one_cycle, "--cycle-momentum", "one-cycle");
  if (settings.beta1 && schedule.cycle_beta1) {
    throw Error(ErrorCode::kUsage, "--beta1, --cycle-momentum", "exclude each other", "",
                "--cycle-momentum moves beta1 from 0.95 to 0.85 and back");
  }
}

/// A rise that the run does not finish is a plan, of which the run warns; two kinds have no shape for it.
/// \throws Error{kUsage}
void RequireWarmupThatFits(const ScheduleOptions& schedule, const std::string& hint = "") {
  if (schedule.kind != ScheduleKind::kOneCycle && schedule.kind != ScheduleKind::kWsd) return;
  if (schedule.warmup_steps <= static_cast<double>(schedule.total_steps)) return;
  throw Error(ErrorCode::kUsage, "--warmup",
              std::to_string(static_cast<int64_t>(schedule.warmup_steps)) + " steps: must lie in [0, " +
                  std::to_string(schedule.total_steps) + "], the run's length, with this --schedule",
              "", hint);
}

/// Of wsd.
/// \throws Error{kUsage}
void RequireDecayThatFits(const ScheduleOptions& schedule, const std::string& hint = "") {
  const int64_t after_warmup = schedule.total_steps - static_cast<int64_t>(schedule.warmup_steps);
  if (schedule.decay_steps >= 1 && schedule.decay_steps <= after_warmup) return;
  throw Error(ErrorCode::kUsage, "--decay-steps",
              std::to_string(schedule.decay_steps) + " steps: must lie in [1, " +
                  std::to_string(after_warmup) + "], the steps after warm-up",
              "", hint);
}

void PlanWarmup(const TrainSettings& settings, PlannedRun* planned) {
  ScheduleOptions& schedule = planned->plan.schedule;
  const int64_t steps = schedule.total_steps;
  const bool one_cycle = schedule.kind == ScheduleKind::kOneCycle;
  if (settings.warmup_ratio) {
    schedule.warmup_steps = WarmupSteps(*settings.warmup_ratio, steps);
    planned->reasons.push_back({"warmup-ratio",
                                std::to_string(static_cast<int64_t>(schedule.warmup_steps)) +
                                    " steps, the share of the run rounded up",
                                ""});
  } else if (settings.warmup) {
    RequireWarmupThatFits(schedule);
  } else {
    schedule.warmup_steps = UsualWarmupSteps(schedule.kind, steps);
    planned->reasons.push_back(
        {"warmup",
         one_cycle ? "a tenth of the run, as one-cycle does" : "a twentieth of the run, at most 1000 steps",
         ""});
  }
}

/// Of wsd.
void PlanDecay(const TrainSettings& settings, PlannedRun* planned) {
  ScheduleOptions& schedule = planned->plan.schedule;
  const int64_t usual = UsualDecaySteps(schedule);
  if (settings.decay_steps) {
    RequireDecayThatFits(schedule);
    return;
  }
  schedule.decay_steps = usual;
  planned->reasons.push_back({"decay-steps", "a fifth of the run",
                              "decay over the last " + std::to_string(schedule.decay_steps) + " steps"});
}

void PlanPeakRate(const PlanFacts& facts, PlannedRun* planned) {
  double& lr = planned->plan.schedule.peak_lr;
  const int64_t hidden_size = facts.model.hidden_size;
  const bool adapters = planned->plan.tuning.lora.has_value();
  lr = adapters ? kLoraLearningRate
                : std::min(3e-3, 0.5 / static_cast<double>(std::max<int64_t>(1, hidden_size)));
  std::string reason = adapters ? "what adapters are usually given"
                                : "0.5 / hidden size " + std::to_string(hidden_size) + ", at most 0.003";
  const OptimizerDescription& optimizer = facts.choices.Optimizer(planned->plan.optimizer.name);
  if (optimizer.rate_over_adamw != 1) {
    lr *= optimizer.rate_over_adamw;
    reason += ", times " + nlohmann::json(optimizer.rate_over_adamw).dump() + " for " + optimizer.name;
  }
  planned->reasons.push_back({"lr", reason, "learning rate " + nlohmann::json(lr).dump()});
}

}  // namespace

void PlanSchedule(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  ScheduleOptions& schedule = planned->plan.schedule;
  schedule.cycle_beta1 = settings.cycle_momentum;
  CheckMeanings(settings, schedule);
  if (schedule.kind == ScheduleKind::kOneCycle) {
    schedule.final_lr_ratio = 1 / kOneCycleDiv / kOneCycleFinalDiv;
  } else if (!settings.min_lr_ratio) {
    schedule.final_lr_ratio = schedule.kind == ScheduleKind::kWsd ? 0.0 : 0.1;
  }
  const bool has_usual_decay = schedule.kind == ScheduleKind::kWsd && !settings.decay_steps;
  planned->plan.shares = {.warmup_ratio = settings.warmup_ratio,
                          .usual_warmup = !settings.warmup && !settings.warmup_ratio,
                          .usual_decay = has_usual_decay};
  PlanWarmup(settings, planned);
  if (schedule.kind == ScheduleKind::kWsd) PlanDecay(settings, planned);
  if (!settings.lr) PlanPeakRate(facts, planned);
}

void AdjustSchedule(const TrainSettings& settings, int64_t steps_before, TrainPlan* plan) {
  ScheduleOptions& schedule = plan->schedule;
  CheckMeanings(settings, schedule);
  const bool is_other_warmup = settings.warmup || settings.warmup_ratio;
  if (is_other_warmup) {
    plan->shares.warmup_ratio = settings.warmup_ratio;
    plan->shares.usual_warmup = false;
  }
  if (settings.decay_steps) plan->shares.usual_decay = false;
  const bool is_other_length = schedule.total_steps != steps_before;
  if (!is_other_length && !is_other_warmup && !settings.decay_steps) return;
  if (is_other_length || is_other_warmup) TakeShares(plan->shares, &schedule);
  const auto hint = [](bool is_asked) { return is_asked ? "" : "they are the parent's: give other ones"; };
  RequireWarmupThatFits(schedule, hint(is_other_warmup));
  if (schedule.kind != ScheduleKind::kWsd) return;
  UsualDecaySteps(schedule);  // refuses a warm-up that leaves none
  RequireDecayThatFits(schedule, hint(settings.decay_steps.has_value()));
}

}  // namespace trainwright
