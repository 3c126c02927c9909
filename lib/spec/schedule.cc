#include "lib/spec/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine,
                                   ScheduleKind::kWsd, ScheduleKind::kOneCycle};

/// From `start` at t = 0 to `end` at t = 1 along half a cosine.
double HalfCosine(double start, double end, double t) {
  return end + (start - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
}

/// One-cycle's value at a step: from `low` to `high` until the peak, then to `end`.
double OneCycle(const ScheduleOptions& options, double low, double high, double end, int64_t step) {
  const auto k = static_cast<double>(step), last = static_cast<double>(options.total_steps - 1);
  const double peak_step = options.warmup_steps - 1;
  if (k < peak_step) return HalfCosine(low, high, k / peak_step);
  if (last <= peak_step) return high;
  return HalfCosine(high, end, std::min(1.0, (k - peak_step) / (last - peak_step)));
}

}  // namespace

ScheduleKind ParseScheduleKind(const std::string& name, const std::string& flag) {
  std::string names;
  for (const ScheduleKind kind : kKinds) {
    if (name == ScheduleKindName(kind)) return kind;
    names += (names.empty() ? "" : ", ") + ScheduleKindName(kind);
  }
  throw Error(ErrorCode::kUsage, flag, "unknown schedule '" + name + "'", "", "use one of " + names);
}

std::string ScheduleKindName(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kLinear:
      return "linear";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kWsd:
      return "wsd";
    case ScheduleKind::kOneCycle:
      return "one-cycle";
  }
  return "";
}

double LearningRate(const ScheduleOptions& options, int64_t step) {
  const double peak = options.peak_lr, r = options.final_lr_ratio;
  if (options.kind == ScheduleKind::kOneCycle) {
    const double low = peak / kOneCycleDiv;
    return OneCycle(options, low, peak, low / kOneCycleFinalDiv, step);
  }
  const auto n = static_cast<double>(step + 1), total = static_cast<double>(options.total_steps);
  if (n <= options.warmup_steps) return peak * n / options.warmup_steps;
  const auto done = [&](double begin) {
    return std::clamp((n - begin) / std::max(1.0, total - begin), 0.0, 1.0);
  };
  switch (options.kind) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kOneCycle:
      return peak;
    case ScheduleKind::kLinear:
      return peak * (1.0 - (1.0 - r) * done(options.warmup_steps));
    case ScheduleKind::kCosine:
      return peak * HalfCosine(1.0, r, done(options.warmup_steps));
    case ScheduleKind::kWsd:
      return peak * (1.0 - (1.0 - r) * std::sqrt(done(total - static_cast<double>(options.decay_steps))));
  }
  return peak;
}

double CycledBeta1(const ScheduleOptions& options, double beta1, int64_t step) {
  if (!options.cycle_beta1 || options.kind != ScheduleKind::kOneCycle) return beta1;
  return OneCycle(options, kOneCycleHighBeta1, kOneCycleLowBeta1, kOneCycleHighBeta1, step);
}

}  // namespace trainwright
