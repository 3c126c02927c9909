/// Learning-rate schedules as pure functions of the step, so that a resumed run needs no schedule state.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

enum class ScheduleKind { kConstant, kLinear, kCosine };

/// "constant", "linear", "cosine". \throws Error{kUsage} naming `flag`
ScheduleKind ParseScheduleKind(const std::string& name, const std::string& flag);
std::string ScheduleKindName(ScheduleKind kind);

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak_lr = 3e-4;
  double final_lr_ratio = 0.1;  ///< learning rate at the last step over the peak; unused by kConstant
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;  ///< steps of the whole run, warm-up included
};

/// The learning rate of optimizer step `step`, counted from 0.
///
/// Warm-up: peak * (step + 1) / warmup_steps for step < warmup_steps, so that the first step already moves.
/// Then with t = (step + 1 - warmup_steps) / (total_steps - warmup_steps) clamped to [0, 1], r the final
/// ratio: linear peak * (1 - (1 - r) t), cosine peak * (r + (1 - r) (1 + cos(pi t)) / 2).
double LearningRate(const ScheduleOptions& options, int64_t step);

}  // namespace trainwright
