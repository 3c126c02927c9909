#include "lib/train/model_flops.h"

#include <algorithm>

namespace trainwright {

int64_t CountAttentionPairs(const std::vector<int32_t>& starts, const ModelConfig& config) {
  if (config.layer_windows.empty()) return CountAttentionPairs(starts);
  int64_t pairs = 0;
  for (const int64_t window : config.layer_windows) pairs += CountAttentionPairs(starts, window);
  return pairs / config.num_layers;
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

double TrainingFlops(const ModelConfig& config, const TokenCounts& counts) {
  // In doubles: the products of a large model and a long step pass 2^63.
  const auto width = static_cast<double>(config.hidden_size),
             queries = static_cast<double>(config.num_heads * config.head_dim),
             keys = static_cast<double>(config.num_kv_heads * config.head_dim),
             mlp = static_cast<double>(config.intermediate_size),
             layers = static_cast<double>(config.num_layers);
  const double mlp_matrices = config.activation == Activation::kSwiglu ? 3 : 2;
  const double layer = 2 * width * queries + 2 * width * keys + mlp_matrices * width * mlp;
  const double products = 2 * static_cast<double>(counts.tokens) * layers * layer;
  const double head =
      2 * static_cast<double>(counts.labels) * width * static_cast<double>(config.vocab_size);
  const double attention = 4 * static_cast<double>(counts.attention_pairs) * layers * queries;
  return 3 * (products + head + attention);
}

}  // namespace trainwright
