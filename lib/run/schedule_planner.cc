#include "lib/run/schedule_planner.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"
#include "lib/run/schedule_shares.h"

namespace trainwright {
namespace {

constexpr double kLoraLearningRate = 2e-4;
constexpr char kOfParent[] = "they are the parent's: give other ones";

/// The last rate over the peak where nobody asks for one.
double UsualFinalRatio(ScheduleKind kind) {
  if (kind == ScheduleKind::kOneCycle) return 1 / kOneCycleDiv / kOneCycleFinalDiv;
  return kind == ScheduleKind::kWsd ? 0.0 : 0.1;
}

/// Whether --min-lr-ratio says something of it.
bool TakesFinalRatio(ScheduleKind kind) {
  return kind != ScheduleKind::kConstant && kind != ScheduleKind::kOneCycle;
}

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

/// Asks for the parent's warm-up, where somebody asked for that and nobody for another.
/// \throws Error{kUsage} where it does not fit
void KeepWarmup(const TrainPlan& parent, const ScheduleOptions& schedule, TrainSettings* settings) {
  if (settings->warmup || settings->warmup_ratio || parent.shares.usual_warmup) return;
  const double steps = parent.schedule.warmup_steps;
  if (parent.shares.warmup_ratio) {
    settings->warmup_ratio = parent.shares.warmup_ratio;
  } else if (steps == std::floor(steps)) {  // a fraction of a step is one-cycle's usual warm-up
    RequireWarmupThatFits(schedule, kOfParent);
    settings->warmup = static_cast<int64_t>(steps);
  }
}

/// Asks for the parent's last rate, where both schedules take one and the parent's is not what its schedule
/// usually has; where it is, the branch has its own schedule's, and says so.
void KeepFinalRatio(const ScheduleOptions& parent, TrainSettings* settings, PlannedRun* planned) {
  const ScheduleKind kind = planned->plan.schedule.kind;
  if (settings->min_lr_ratio || !TakesFinalRatio(kind) || !TakesFinalRatio(parent.kind)) return;
  const double stored = parent.final_lr_ratio, usual = UsualFinalRatio(kind);
  if (stored != UsualFinalRatio(parent.kind)) {
    settings->min_lr_ratio = stored;
  } else if (stored != usual) {
    planned->reasons.push_back({"min-lr-ratio",
                                "what " + ScheduleKindName(kind) + " has by default; the parent's " +
                                    nlohmann::json(stored).dump() + " is " + ScheduleKindName(parent.kind) +
                                    "'s",
                                "last learning rate " + nlohmann::json(usual).dump() + " of the peak"});
  }
}

}  // namespace

void PlanSchedule(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  ScheduleOptions& schedule = planned->plan.schedule;
  schedule.cycle_beta1 = settings.cycle_momentum;
  CheckMeanings(settings, schedule);
  if (!settings.min_lr_ratio) schedule.final_lr_ratio = UsualFinalRatio(schedule.kind);
  const bool has_usual_decay = schedule.kind == ScheduleKind::kWsd && !settings.decay_steps;
  planned->plan.shares = {.warmup_ratio = settings.warmup_ratio,
                          .usual_warmup = !settings.warmup && !settings.warmup_ratio,
                          .usual_decay = has_usual_decay};
  PlanWarmup(settings, planned);
  if (schedule.kind == ScheduleKind::kWsd) PlanDecay(settings, planned);
  if (!settings.lr) PlanPeakRate(facts, planned);
}

void ReplaceSchedule(const TrainSettings& settings, const PlanFacts& facts, const TrainPlan& parent,
                     PlannedRun* planned) {
  TrainSettings asked = settings;
  asked.lr = planned->plan.schedule.peak_lr;
  KeepWarmup(parent, planned->plan.schedule, &asked);
  KeepFinalRatio(parent.schedule, &asked, planned);
  PlanSchedule(asked, facts, planned);
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
  const auto hint = [](bool is_asked) { return is_asked ? "" : kOfParent; };
  RequireWarmupThatFits(schedule, hint(is_other_warmup));
  if (schedule.kind != ScheduleKind::kWsd) return;
  UsualDecaySteps(schedule);  // refuses a warm-up that leaves none
  RequireDecayThatFits(schedule, hint(settings.decay_steps.has_value()));
}

}  // namespace trainwright
