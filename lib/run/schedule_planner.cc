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
void CheckMeanings(const TrainSettings& settings, ScheduleKind kind) {
  const bool one_cycle = kind == ScheduleKind::kOneCycle;
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
  only_with(settings.decay_steps.has_value(), kind == ScheduleKind::kWsd, "--decay-steps", "wsd");
  only_with(settings.cycle_momentum, one_cycle, "--cycle-momentum", "one-cycle");
  if (settings.beta1 && settings.cycle_momentum) {
    throw Error(ErrorCode::kUsage, "--beta1, --cycle-momentum", "exclude each other", "",
                "--cycle-momentum moves beta1 from 0.95 to 0.85 and back");
  }
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
    // A rise that the run does not finish is a plan, of which the run warns; these two have no shape for it.
    if (one_cycle || schedule.kind == ScheduleKind::kWsd) {
      RequireAsked(
          *settings.warmup <= steps, "--warmup", *settings.warmup,
          "steps: must lie in [0, " + std::to_string(steps) + "], the run's length, with this --schedule");
    }
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
    const int64_t after_warmup = schedule.total_steps - static_cast<int64_t>(schedule.warmup_steps);
    RequireAsked(schedule.decay_steps >= 1 && schedule.decay_steps <= after_warmup, "--decay-steps",
                 schedule.decay_steps,
                 "steps: must lie in [1, " + std::to_string(after_warmup) + "], the steps after warm-up");
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
  CheckMeanings(settings, schedule.kind);
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

}  // namespace trainwright
