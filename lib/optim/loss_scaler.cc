#include "lib/optim/loss_scaler.h"

#include <algorithm>

namespace trainwright {
namespace {
constexpr double kInitialScale = 65536.0, kLargestScale = 16777216.0;
constexpr int64_t kGrowthInterval = 2000;
}  // namespace

LossScaler::LossScaler(bool enabled) : enabled_(enabled) {
  state_.scale = enabled ? kInitialScale : 1.0;
}

bool LossScaler::Update(bool finite) {
  if (!enabled_) return true;
  if (!finite) {
    state_.scale = std::max(1.0, state_.scale / 2);
    state_.good_steps = 0;
    ++state_.skipped_steps;
    return false;
  }
  if (++state_.good_steps == kGrowthInterval) {
    state_.scale = std::min(kLargestScale, state_.scale * 2);
    state_.good_steps = 0;
  }
  return true;
}

}  // namespace trainwright
