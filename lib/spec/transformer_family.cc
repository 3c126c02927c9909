#include "lib/spec/transformer_family.h"

#include <algorithm>

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
  const auto stage_of = [&](size_t matrix) { return of_a_layer[matrix % of_a_layer.size()].stage; };
  std::vector<std::string> modules;
  for (const LayerMatrix& matrix : matrices) modules.push_back(matrix.module);
  struct Layer {
    bool adapted[kStages] = {};
  };
  std::vector<Layer> layers(static_cast<size_t>(config.num_layers));
  std::vector<bool> has_adapter(matrices.size());
  int64_t lowest = config.num_layers;  // layer with an adapter
  for (const size_t target : ChooseLoraTargets(lora.targets, modules, lora_blocks())) {
    has_adapter[target] = true;
    layers[static_cast<size_t>(matrices[target].layer)].adapted[stage_of(target)] = true;
    lowest = std::min(lowest, matrices[target].layer);
  }
  // Whether a gradient goes to the input of a stage: an adapter lies below it.
  const auto leads_to_adapter = [&](int64_t layer, Stage stage) {
    if (layer != lowest) return layer > lowest;
    const bool* adapted = layers[static_cast<size_t>(layer)].adapted;
    const bool is_mlp = stage >= kUp;
    for (int below = config.parallel_residual && is_mlp ? kUp : kQkv; below < stage; ++below) {
      if (adapted[below]) return true;
    }
    return false;
  };

  StepFlops flops = ForwardFlops(config);
  flops.per_label *= 2;
  const double pair_of_a_layer = flops.per_pair / static_cast<double>(config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (leads_to_adapter(layer, kAttentionOut)) flops.per_pair += 2 * pair_of_a_layer;
  }
  const auto rank = static_cast<double>(lora.rank);
  for (size_t i = 0; i < matrices.size(); ++i) {
    const auto out = static_cast<double>(matrices[i].outputs), in = static_cast<double>(matrices[i].inputs);
    const bool goes_on = leads_to_adapter(matrices[i].layer, stage_of(i));
    if (goes_on) flops.per_token += 2 * in * out;
    if (!has_adapter[i]) continue;
    flops.per_token += 2 * rank * (in + out) + 4 * rank * out + 2 * rank * in + (goes_on ? 2 * rank * in : 0);
  }
  return flops;
}

}  // namespace trainwright
