/// Whether the update of a step is made: it is skipped where fp16 gradients are not finite, which changes the
/// loss scale, and where a step's loss or gradient norm is an outlier (lib/nn/update/outlier_window.h). Not
/// thread-safe.
#pragma once

#include <optional>

#include "lib/nn/update/outlier_window.h"
#include "lib/optim/loss_scaler.h"

namespace trainwright {

class StepGuard {
 public:
  /// What a checkpoint keeps.
  struct State {
    LossScaler::State scaler = {};
    StepOutliers outliers = {};
  };

  /// \param scaled whether the loss scale is dynamic
  StepGuard(bool scaled, const OutlierLimits& limits) : scaler_(scaled) { outliers_.limits = limits; }
  const LossScaler& scaler() const { return scaler_; }
  const StepOutliers& outliers() const { return outliers_; }
  State state() const { return {scaler_.state(), outliers_}; }
  /// The limits stay those of this run.
  void set_state(const State& state);
  /// Takes in what a step came to.
  /// \param finite whether loss and gradients are
  /// \param loss_nats of the run; nothing where the step lacks one of its terms
  /// \param grad_norm before clipping
  /// \returns whether to update
  bool Judge(bool finite, std::optional<double> loss_nats, double grad_norm);

 private:
  LossScaler scaler_;
  StepOutliers outliers_{};
};

}  // namespace trainwright
