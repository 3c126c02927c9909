/// Settings of `train` that exclude each other or are out of range, told before anything is opened.
#pragma once

#include "lib/run/train_settings.h"

namespace trainwright {

/// \throws Error{kUsage}
void CheckTrainSettings(const TrainSettings& settings);

/// Refuses what needs evaluations of a run that has no data for them.
/// \param evaluates whether it has
/// \param eval_every_is_asked whether the user, and not a preset, gave --eval-every
/// \throws Error{kUsage}
void CheckEvaluations(const TrainSettings& settings, bool evaluates, bool eval_every_is_asked);

}  // namespace trainwright
