/// How often a run evaluates and saves.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/run/save_interval.h"
#include "lib/run/train_settings.h"

namespace trainwright {

struct Cadence {
  SaveInterval save_every;
  int64_t eval_every = 0;  ///< steps; 0: at the start and the end only

  /// Whether a checkpoint is due before the last step: nothing is left to train beside that at the end.
  bool SavesBetween(int64_t first_step, int64_t total_steps) const {
    if (save_every.time_s > 0 || save_every.epochs) return true;
    return save_every.steps > 0 && (total_steps - 1) / save_every.steps > first_step / save_every.steps;
  }
};

/// What nobody chose is a tenth of the run, 10 to 500 steps.
inline Cadence PlanCadence(const TrainSettings& settings, int64_t total_steps) {
  const int64_t tenth = std::clamp<int64_t>((total_steps + 9) / 10, 10, 500);
  return {.save_every = settings.save_every.empty() ? SaveInterval{.steps = tenth}
                                                    : ParseSaveInterval(settings.save_every, "--save-every"),
          .eval_every = settings.eval_every.value_or(tenth)};
}

}  // namespace trainwright
