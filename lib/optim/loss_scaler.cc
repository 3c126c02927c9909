#include "lib/optim/loss_scaler.h"

#include "lib/nn/update/step_decision.h"

namespace trainwright {
namespace {
constexpr double kInitialScale = 65536.0;
}  // namespace

LossScaler::LossScaler(bool enabled) : enabled_(enabled) {
  state_.scale = enabled ? kInitialScale : 1.0;
}

bool LossScaler::Update(bool finite) {
  if (!enabled_) return true;
  auto good_steps = static_cast<double>(state_.good_steps),
       skipped = static_cast<double>(state_.skipped_steps);
  UpdateLossScale(finite, &state_.scale, &good_steps, &skipped);
  state_.good_steps = static_cast<int64_t>(good_steps);
  state_.skipped_steps = static_cast<int64_t>(skipped);
  return finite;
}

}  // namespace trainwright
