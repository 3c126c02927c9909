#include "lib/run/plan_rules.h"

#include <cmath>

namespace trainwright {

std::string LengthRule(const TrainSettings& settings) {
  const int given = settings.steps.has_value() + settings.epochs.has_value() + settings.tokens.has_value();
  if (given > 1) {
    throw Error(ErrorCode::kUsage, "--steps, --epochs, --tokens", "exclude each other", "",
                "give one of them");
  }
  if (settings.steps) return "steps " + std::to_string(*settings.steps);
  if (settings.epochs) return "epochs " + nlohmann::json(*settings.epochs).dump();
  if (settings.tokens) return "tokens " + std::to_string(*settings.tokens);
  return "";
}

double WarmupSteps(double ratio, int64_t total_steps) {
  RequireAsked(ratio >= 0 && ratio <= 1, "--warmup-ratio", ratio, "must lie in [0, 1]");
  return std::ceil(ratio * static_cast<double>(total_steps));
}

}  // namespace trainwright
