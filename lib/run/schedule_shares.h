/// Parts of a schedule that are shares of the run: those that were asked for as such, and those that nobody
/// asked for.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/spec/schedule.h"

namespace trainwright {

/// A plan of before there were these has none: all its lengths are steps.
struct ScheduleShares {
  std::optional<double> warmup_ratio;  ///< that was asked for
  bool usual_warmup = false;           ///< whether nobody asked for a warm-up
  bool usual_decay = false;            ///< whether nobody asked for wsd's decay
};

/// The warm-up of a run for which none was asked.
double UsualWarmupSteps(ScheduleKind kind, int64_t total_steps);
/// Likewise the decay of wsd, which ends with the run and begins after its warm-up.
/// \throws Error{kUsage} where that leaves no step
int64_t UsualDecaySteps(const ScheduleOptions& schedule);

/// Whether a part of the schedule is what a run of its length has where nobody asks for it, and nobody did.
/// That of a run that was made longer without --replan-schedule may be another.
bool HasUsualWarmup(const ScheduleShares& shares, const ScheduleOptions& schedule);
bool HasUsualDecay(const ScheduleShares& shares, const ScheduleOptions& schedule);

/// Computes the shares of a schedule for the length that it has.
/// \throws as UsualDecaySteps
void TakeShares(const ScheduleShares& shares, ScheduleOptions* schedule);
/// Makes the shares of a schedule 0: what is left does not change with the length of the run.
void ClearShares(const ScheduleShares& shares, ScheduleOptions* schedule);

}  // namespace trainwright
