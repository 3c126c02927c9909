#include "lib/run/schedule_shares.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/base/error.h"
#include "lib/run/plan_rules.h"

namespace trainwright {

double UsualWarmupSteps(ScheduleKind kind, int64_t total_steps) {
  if (kind == ScheduleKind::kOneCycle) return kOneCycleWarmupRatio * static_cast<double>(total_steps);
  return static_cast<double>(
      std::clamp<int64_t>(total_steps / 20, std::min<int64_t>(total_steps - 1, 1), 1000));
}

int64_t UsualDecaySteps(const ScheduleOptions& schedule) {
  const auto warmup = static_cast<int64_t>(schedule.warmup_steps);
  const int64_t after_warmup = schedule.total_steps - warmup;
  if (after_warmup < 1) {
    throw Error(ErrorCode::kUsage, "--warmup",
                std::to_string(warmup) + " steps leave none for the decay of --schedule wsd");
  }
  return std::clamp<int64_t>(std::llround(kWsdDecayRatio * static_cast<double>(schedule.total_steps)), 1,
                             after_warmup);
}

bool HasUsualWarmup(const ScheduleShares& shares, const ScheduleOptions& schedule) {
  return shares.usual_warmup &&
         schedule.warmup_steps == UsualWarmupSteps(schedule.kind, schedule.total_steps);
}

bool HasUsualDecay(const ScheduleShares& shares, const ScheduleOptions& schedule) {
  return shares.usual_decay && schedule.decay_steps == UsualDecaySteps(schedule);
}

void TakeShares(const ScheduleShares& shares, ScheduleOptions* schedule) {
  if (shares.warmup_ratio) {
    schedule->warmup_steps = WarmupSteps(*shares.warmup_ratio, schedule->total_steps);
  } else if (shares.usual_warmup) {
    schedule->warmup_steps = UsualWarmupSteps(schedule->kind, schedule->total_steps);
  }
  if (shares.usual_decay) schedule->decay_steps = UsualDecaySteps(*schedule);
}

void ClearShares(const ScheduleShares& shares, ScheduleOptions* schedule) {
  if (shares.warmup_ratio || shares.usual_warmup) schedule->warmup_steps = 0;
  if (shares.usual_decay) schedule->decay_steps = 0;
}

}  // namespace trainwright
