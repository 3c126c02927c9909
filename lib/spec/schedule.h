/// Learning-rate schedules as pure functions of the step, so that a resumed run needs no schedule state.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

enum class ScheduleKind { kConstant, kLinear, kCosine, kWsd, kOneCycle };

/// "constant", "linear", "cosine", "wsd", "one-cycle".
/// \throws Error{kUsage} naming `flag`
ScheduleKind ParseScheduleKind(const std::string& name, const std::string& flag);
std::string ScheduleKindName(ScheduleKind kind);

/// One-cycle: peak over first learning rate, and first over last.
inline constexpr double kOneCycleDiv = 25, kOneCycleFinalDiv = 1e4;
/// One-cycle's share of warm-up where none is asked for.
inline constexpr double kOneCycleWarmupRatio = 0.1;
/// WSD's share of decay where none is asked for.
inline constexpr double kWsdDecayRatio = 0.2;
/// One-cycle's beta1 where the learning rate is lowest, and at its peak.
inline constexpr double kOneCycleHighBeta1 = 0.95, kOneCycleLowBeta1 = 0.85;

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak_lr = 3e-4;
  double final_lr_ratio = 0.1;  ///< rate at the last step over the peak; unused by kConstant, kOneCycle
  double warmup_steps = 0;      ///< a whole number but for kOneCycle
  int64_t decay_steps = 0;      ///< kWsd alone: the last steps of the run
  int64_t total_steps = 1;      ///< steps of the whole run, warm-up included
  bool cycle_beta1 = false;     ///< kOneCycle alone
};

/// The learning rate of optimizer step `step`, counted from 0. With w warm-up steps, S total steps, r the
/// final ratio and n = step + 1:
///
/// All but one-cycle warm up by peak * n / w while n <= w, so that the first step already moves. Then
/// - linear: peak * (1 - (1 - r) t) and cosine: peak * (r + (1 - r) (1 + cos(pi t)) / 2),
///   t = (n - w) / (S - w) clamped to [0, 1];
/// - wsd (warm-up, stable, decay): the peak, and over the last D = decay_steps steps
///   peak * (r + (1 - r) (1 - sqrt(u))), u = (n - (S - D)) / D.
///   \source Hu et al. 2024 (MiniCPM), arXiv:2404.06395, section 4; the shape 1 - sqrt, and a decay of a
///   fifth of the run to zero: Haegele et al. 2024, arXiv:2405.18392, section 3.
///
/// One-cycle counts k = step and has k1 = w - 1: from peak / 25 at k = 0 along half a cosine to the peak at
/// k1, then along another to peak / 25 / 1e4 at k = S - 1. With w <= 1 there is no rise.
/// \source Smith and Topin 2018, arXiv:1708.07120, as torch.optim.lr_scheduler.OneCycleLR computes it
double LearningRate(const ScheduleOptions& options, int64_t step);

/// AdamW's beta1 of a step: `beta1`, or with cycle_beta1 0.95 -> 0.85 -> 0.95 along one-cycle's two half
/// cosines.
double CycledBeta1(const ScheduleOptions& options, double beta1, int64_t step);

}  // namespace trainwright
