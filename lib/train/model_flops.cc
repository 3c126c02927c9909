#include "lib/train/model_flops.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "lib/nn/linear/lora.h"

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

namespace {

/// Where a matrix lies in its layer, in the order of the forward pass. In a parallel layer kUp does not lie
/// above attention.
enum Stage { kQkv = 0, kAttentionOut, kUp, kDown, kStages };

Stage StageOf(const std::string& name_in_layer) {
  for (const char* name : {"self_attn.o_proj", "attn.c_proj", "attention.dense"}) {
    if (name_in_layer == name) return kAttentionOut;
  }
  for (const char* name : {"mlp.down_proj", "mlp.c_proj", "mlp.dense_4h_to_h"}) {
    if (name_in_layer == name) return kDown;
  }
  return name_in_layer.starts_with("mlp.") ? kUp : kQkv;
}

/// 3 of "model.layers.3.self_attn.q_proj".
size_t LayerOf(const std::string& module) {
  const std::string front = module.substr(0, module.size() - NameInLayer(module).size() - 1);
  return static_cast<size_t>(std::stoul(front.substr(front.rfind('.') + 1)));
}

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

StepFlops AdapterStepFlops(const LanguageModel& model, const LoraAdapters& adapters) {
  const ModelConfig& config = model.config();
  const FlatParameters& parameters = model.parameters();
  struct Layer {
    bool adapted[kStages] = {};
  };
  std::vector<Layer> layers(static_cast<size_t>(config.num_layers));
  for (const LoraModule& module : adapters.modules()) {
    layers.at(LayerOf(module.name)).adapted[StageOf(NameInLayer(module.name))] = true;
  }
  size_t lowest = 0;  // layer with an adapter
  const auto has_adapter = [](const Layer& layer) {
    return std::any_of(std::begin(layer.adapted), std::end(layer.adapted),
                       [](bool adapted) { return adapted; });
  };
  while (!has_adapter(layers[lowest])) ++lowest;
  // Whether a gradient goes to the input of a stage: an adapter lies below it.
  const auto leads_to_adapter = [&](size_t layer, Stage stage) {
    if (layer != lowest) return layer > lowest;
    const bool* adapted = layers[layer].adapted;
    const bool is_mlp = stage >= kUp;
    for (int below = config.parallel_residual && is_mlp ? kUp : kQkv; below < stage; ++below) {
      if (adapted[below]) return true;
    }
    return false;
  };

  StepFlops flops = ForwardFlops(config);
  flops.per_label *= 2;
  const double pair_of_a_layer = flops.per_pair / static_cast<double>(config.num_layers);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (leads_to_adapter(layer, kAttentionOut)) flops.per_pair += 2 * pair_of_a_layer;
  }
  for (const size_t index : LayerMatrices(parameters)) {
    const Parameter& matrix = parameters.all()[index];
    if (IsAdapterParameter(matrix)) continue;
    const std::string module = matrix.name.substr(0, matrix.name.rfind(".weight"));
    const auto out = static_cast<double>(matrix.shape[0]), in = static_cast<double>(matrix.shape[1]);
    const bool goes_on = leads_to_adapter(LayerOf(module), StageOf(NameInLayer(module)));
    if (goes_on) flops.per_token += 2 * in * out;
    if (!adapters.ModuleOf(index)) continue;
    const auto rank = static_cast<double>(adapters.options().rank);
    flops.per_token += 2 * rank * (in + out) + 4 * rank * out + 2 * rank * in + (goes_on ? 2 * rank * in : 0);
  }
  return flops;
}

}  // namespace

double StepFlops::Of(const TokenCounts& counts) const {
  return per_token * static_cast<double>(counts.tokens) + per_label * static_cast<double>(counts.labels) +
         per_pair * static_cast<double>(counts.attention_pairs);
}

double TrainingFlops(const ModelConfig& config, const TokenCounts& counts) {
  return Times(3, ForwardFlops(config)).Of(counts);
}

StepFlops CountStepFlops(const LanguageModel& model) {
  const LoraAdapters* adapters = model.parameters().adapters();
  return adapters == nullptr ? Times(3, ForwardFlops(model.config())) : AdapterStepFlops(model, *adapters);
}

}  // namespace trainwright
