#include "lib/spec/model_flops.h"

#include <algorithm>

#include "lib/spec/family.h"

namespace trainwright {

double StepFlops::Of(const TokenCounts& counts) const {
  return per_token * static_cast<double>(counts.tokens) + per_label * static_cast<double>(counts.labels) +
         per_pair * static_cast<double>(counts.attention_pairs);
}

int64_t CountAttentionPairs(const std::vector<int32_t>& starts, int64_t window) {
  int64_t pairs = 0;
  for (size_t i = 1; i < starts.size(); ++i) {
    const int64_t length = starts[i] - starts[i - 1];
    const int64_t rising = window == 0 ? length : std::min(length, window);
    pairs += rising * (rising + 1) / 2 + (length - rising) * rising;
  }
  return pairs;
}

int64_t CountAttentionPairs(const std::vector<int32_t>& starts, const ModelConfig& config) {
  return FamilyOf(config).CountAttentionPairs(config, starts);
}

StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& tuning) {
  return FamilyOf(config).CountStepFlops(config, tuning);
}

double TrainingFlops(const ModelConfig& config, const TokenCounts& counts) {
  return CountStepFlops(config, {}).Of(counts);
}

}  // namespace trainwright
