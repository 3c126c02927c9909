#include "lib/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace trainwright {

ScheduleKind ParseScheduleKind(const std::string& name, const std::string& flag) {
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    if (name == ScheduleKindName(kind)) return kind;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown schedule '" + name + "'", "",
              "use constant, linear or cosine");
}

std::string ScheduleKindName(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kLinear:
      return "linear";
    case ScheduleKind::kCosine:
      return "cosine";
  }
  return "";
}

double LearningRate(const ScheduleOptions& options, int64_t step) {
  if (step < options.warmup_steps) {
    return options.peak_lr * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  }
  if (options.kind == ScheduleKind::kConstant) return options.peak_lr;
  const auto decay_steps =
      static_cast<double>(std::max<int64_t>(1, options.total_steps - options.warmup_steps));
  const double t = std::clamp(static_cast<double>(step + 1 - options.warmup_steps) / decay_steps, 0.0, 1.0);
  const double r = options.final_lr_ratio;
  if (options.kind == ScheduleKind::kLinear) return options.peak_lr * (1.0 - (1.0 - r) * t);
  return options.peak_lr * (r + (1.0 - r) * 0.5 * (1.0 + std::cos(std::numbers::pi * t)));
}

}  // namespace trainwright
