#include "lib/scaling/pass_costs.h"

#include <numeric>

#include "lib/base/error.h"

namespace trainwright {

double PassCosts::backward_total() const {
  return std::accumulate(backward.begin(), backward.end(), 0.0);
}

PassCosts PassCosts::ScaledTo(double new_total) const {
  const double whole = total(), factor = whole > 0 ? new_total / whole : 0;
  PassCosts scaled = *this;
  scaled.forward *= factor;
  for (double& cost : scaled.backward) cost *= factor;
  return scaled;
}

PassCosts CountPassFlops(const ModelConfig& config, const FineTuning& tuning,
                         ActivationCheckpointing checkpointing, const TokenCounts& counts, size_t segments) {
  TRAINWRIGHT_CHECK(segments >= 1);
  const auto labels = static_cast<double>(counts.labels), layers = static_cast<double>(config.num_layers);
  const StepFlops whole = CountStepFlops(config, {}), trained = CountStepFlops(config, tuning);
  const double forward = whole.Of(counts) / 3, head_forward = whole.per_label * labels / 3;
  const double head_backward = trained.per_label * labels - head_forward;
  double layers_backward = trained.Of(counts) - forward - head_backward;
  if (checkpointing == ActivationCheckpointing::kFull && layers > 0) {
    layers_backward += (forward - head_forward) * (layers - 1) / layers;
  }
  PassCosts costs = {.forward = forward, .backward = std::vector<double>(segments, 0.0)};
  if (segments == static_cast<size_t>(config.num_layers) + 2) {
    for (size_t layer = 1; layer + 1 < segments; ++layer) costs.backward[layer] = layers_backward / layers;
    costs.backward.back() = head_backward;
  } else {
    costs.backward.back() = head_backward + layers_backward;
  }
  return costs;
}

}  // namespace trainwright
