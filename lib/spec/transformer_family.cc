#include "lib/spec/transformer_family.h"

#include "lib/spec/adapter_flops.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {
namespace {

/// Operations of a forward pass through all layers and the head.
StepFlops ForwardFlops(const ModelConfig& config) {
  // In doubles: the products of a large model and a long step pass 2^63.
  const auto width = static_cast<double>(config.hidden_size),
             queries = static_cast<double>(config.num_heads * config.head_dim),
             keys = static_cast<double>(config.num_kv_heads * config.head_dim),
             mlp = static_cast<double>(config.intermediate_size),
             layers = static_cast<double>(config.num_layers);
  const double mlp_matrices = config.activation == Activation::kSwiglu ? 3 : 2;
  return {.per_token = 2 * layers * (2 * width * queries + 2 * width * keys + mlp_matrices * width * mlp),
          .per_label = 2 * width * static_cast<double>(config.vocab_size),
          .per_pair = 4 * layers * queries};
}

StepFlops Times(double factor, const StepFlops& flops) {
  return {factor * flops.per_token, factor * flops.per_label, factor * flops.per_pair};
}

}  // namespace

int64_t TransformerFamily::CountParameters(const ModelConfig& config) const {
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const int64_t queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  const int64_t into_mlp = config.activation == Activation::kSwiglu ? 2 * wide : wide;
  const auto if_biased = [](bool biased, int64_t size) { return biased ? size : 0; };
  const int64_t norm = width + if_biased(config.biases.norm, width);
  const int64_t layer = width * (queries + 2 * keys) + queries * width + into_mlp * width + width * wide +
                        if_biased(config.biases.qkv, queries + 2 * keys) +
                        if_biased(config.biases.attention_out, width) +
                        if_biased(config.biases.mlp, into_mlp + width) + 2 * norm;
  const int64_t positions = learns_positions() ? config.max_positions * width : 0;
  return config.num_layers * layer + norm + positions +
         (config.tie_embeddings ? 1 : 2) * config.vocab_size * width;
}

int64_t TransformerFamily::CountAttentionPairs(const ModelConfig& config,
                                               const std::vector<int32_t>& starts) const {
  if (config.layer_windows.empty()) return trainwright::CountAttentionPairs(starts);
  int64_t pairs = 0;
  for (const int64_t window : config.layer_windows) pairs += trainwright::CountAttentionPairs(starts, window);
  return pairs / config.num_layers;
}

std::vector<LayerMatrix> TransformerFamily::LayerMatrices(const ModelConfig& config) const {
  const std::vector<Matrix> of_a_layer = MatricesOfALayer(config);
  std::vector<LayerMatrix> matrices;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const Matrix& matrix : of_a_layer) {
      matrices.push_back({.module = layers_path() + std::to_string(layer) + "." + matrix.name,
                          .outputs = matrix.outputs,
                          .inputs = matrix.inputs,
                          .layer = layer});
    }
  }
  return matrices;
}

StepFlops TransformerFamily::CountStepFlops(const ModelConfig& config, const FineTuning& tuning) const {
  return tuning.lora ? CountAdapterFlops(config, *tuning.lora) : Times(3, ForwardFlops(config));
}

StepFlops TransformerFamily::CountAdapterFlops(const ModelConfig& config, const LoraOptions& lora) const {
  const std::vector<Matrix> of_a_layer = MatricesOfALayer(config);
  const std::vector<LayerMatrix> matrices = LayerMatrices(config);
  std::vector<MatrixPlace> places;
  for (size_t i = 0; i < matrices.size(); ++i)
    places.push_back({.stage = of_a_layer[i % of_a_layer.size()].stage});
  std::vector<std::vector<int>> below(kStages);
  for (int stage = 0; stage < kStages; ++stage) {
    for (int lower = config.parallel_residual && stage >= kUp ? kUp : kQkv; lower < stage; ++lower) {
      below[static_cast<size_t>(stage)].push_back(lower);
    }
  }
  const SavedModules saved = ChooseSavedModules(lora.saved_modules, outer_modules(), config.tie_embeddings);
  const AdapterFlops adapters(matrices, places, below, lora, lora_blocks(), saved);

  StepFlops flops = ForwardFlops(config);
  flops.per_token += adapters.per_token();
  flops.per_label *= saved.head ? 3 : 2;
  const double pair_of_a_layer = flops.per_pair / static_cast<double>(config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (adapters.LeadsToAdapter(layer, kAttentionOut)) flops.per_pair += 2 * pair_of_a_layer;
  }
  return flops;
}

}  // namespace trainwright
