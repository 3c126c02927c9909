#include "lib/optim/step_guard.h"

namespace trainwright {

void StepGuard::set_state(const State& state) {
  const OutlierLimits limits = outliers_.limits;
  scaler_.set_state(state.scaler);
  outliers_ = state.outliers;
  outliers_.limits = limits;
}

bool StepGuard::Judge(bool finite, std::optional<double> loss_nats, double grad_norm) {
  const bool applied = scaler_.Update(finite);
  const bool stands_out =
      StandsOut(finite, loss_nats.has_value(), loss_nats.value_or(0), grad_norm, &outliers_);
  return applied && !stands_out;
}

}  // namespace trainwright
