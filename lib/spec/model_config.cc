#include "lib/spec/model_config.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

struct LlamaPreset {
  const char* name;
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
  bool tied;
  double rope_theta = 10000.0;
  ModelFamily family = ModelFamily::kLlama;
};

constexpr LlamaPreset kLlamaPresets[] = {
    {"llama-1m", 128, 384, 5, 4, 2, 32, 256, true},
    {"llama-5m", 256, 704, 7, 4, 2, 64, 512, true},
    {"llama-15m", 384, 1024, 10, 6, 2, 64, 512, true},
    {"llama-60m", 640, 1728, 13, 10, 5, 64, 1024, true},
    {"llama-125m", 768, 2048, 20, 12, 4, 64, 1024, true},
    {"llama-350m", 1280, 3456, 20, 20, 5, 64, 2048, false},
    {"llama-1b", 2048, 5632, 22, 32, 8, 64, 2048, false},
    {"smollm2-135m", 576, 1536, 30, 9, 3, 64, 8192, true, 100000.0},
    {"smollm2-360m", 960, 2560, 32, 15, 5, 64, 8192, true, 100000.0},
    {"tinyllama-1.1b", 2048, 5632, 22, 32, 4, 64, 2048, false},
    {"mistral-7b", 4096, 14336, 32, 32, 8, 128, 32768, false, 10000.0, ModelFamily::kMistral},
    {"qwen2-0.5b", 896, 4864, 24, 14, 2, 64, 131072, true, 1000000.0, ModelFamily::kQwen2},
};
constexpr int64_t kMistralWindow = 4096;
constexpr double kQwen2Epsilon = 1e-6;

/// GPT-2 and NeoX.
struct GptPreset {
  const char* name;
  int64_t hidden, layers, heads, positions;
  Activation activation;
  bool bias;
  ModelFamily family = ModelFamily::kGpt2;
};

constexpr GptPreset kGptPresets[] = {
    {"gpt2-124m", 768, 12, 12, 1024, Activation::kGeluTanh, true},
    {"gpt2-350m", 1024, 24, 16, 1024, Activation::kGeluTanh, true},
    {"gpt2-774m", 1280, 36, 20, 1024, Activation::kGeluTanh, true},
    {"gpt2-1558m", 1600, 48, 25, 1024, Activation::kGeluTanh, true},
    {"nanogpt-10m", 384, 6, 6, 256, Activation::kGelu, false},
    {"neox-tiny", 128, 4, 4, 256, Activation::kGelu, true, ModelFamily::kNeox},
    {"neox-1.4b", 2048, 24, 16, 2048, Activation::kGelu, true, ModelFamily::kNeox},
};
constexpr double kNeoxRotaryShare = 0.25;

ModelConfig ConfigOf(const LlamaPreset& preset) {
  ModelConfig config;
  config.preset = preset.name;
  config.family = preset.family;
  config.hidden_size = preset.hidden;
  config.intermediate_size = preset.intermediate;
  config.num_layers = preset.layers;
  config.num_heads = preset.heads;
  config.num_kv_heads = preset.kv_heads;
  config.head_dim = preset.head_dim;
  config.max_positions = preset.positions;
  config.tie_embeddings = preset.tied;
  config.rope.theta = preset.rope_theta;
  if (preset.family == ModelFamily::kMistral) config.layer_windows.assign(preset.layers, kMistralWindow);
  if (preset.family == ModelFamily::kQwen2) {
    config.biases.qkv = true;
    config.rms_norm_eps = kQwen2Epsilon;
  }
  return config;
}

ModelConfig ConfigOf(const GptPreset& preset) {
  ModelConfig config;
  config.preset = preset.name;
  config.family = preset.family;
  config.hidden_size = preset.hidden;
  config.intermediate_size = 4 * preset.hidden;
  config.num_layers = preset.layers;
  config.num_heads = config.num_kv_heads = preset.heads;
  config.head_dim = preset.hidden / preset.heads;
  config.max_positions = preset.positions;
  config.activation = preset.activation;
  if (preset.bias) config.biases = Biases::All();
  if (preset.family == ModelFamily::kNeox) {
    config.parallel_residual = true;
    config.rope.partial_rotary_factor = kNeoxRotaryShare;
  } else {
    config.tie_embeddings = true;
  }
  return config;
}

std::vector<ModelConfig> PresetConfigs() {
  std::vector<ModelConfig> configs;
  for (const LlamaPreset& preset : kLlamaPresets) configs.push_back(ConfigOf(preset));
  for (const GptPreset& preset : kGptPresets) configs.push_back(ConfigOf(preset));
  return configs;
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const ModelConfig& config : PresetConfigs()) names.push_back(config.preset);
  return names;
}

ModelConfig PresetConfig(const std::string& name, int64_t vocab_size) {
  std::string known;
  for (ModelConfig& config : PresetConfigs()) {
    known += (known.empty() ? "" : ", ") + config.preset;
    if (name != config.preset) continue;
    config.vocab_size = vocab_size;
    return config;
  }
  throw Error(ErrorCode::kUsage, "--model", "unknown preset '" + name + "'", "",
              "use one of " + known + ", or the path of a config.json");
}

int64_t CountParameters(const ModelConfig& config) {
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const int64_t queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  const int64_t into_mlp = config.llama_like() ? 2 * wide : wide;
  const auto if_biased = [](bool biased, int64_t size) { return biased ? size : 0; };
  const int64_t norm = width + if_biased(config.biases.norm, width);
  const int64_t layer = width * (queries + 2 * keys) + queries * width + into_mlp * width + width * wide +
                        if_biased(config.biases.qkv, queries + 2 * keys) +
                        if_biased(config.biases.attention_out, width) +
                        if_biased(config.biases.mlp, into_mlp + width) + 2 * norm;
  const int64_t positions = config.family == ModelFamily::kGpt2 ? config.max_positions * width : 0;
  return config.num_layers * layer + norm + positions +
         (config.tie_embeddings ? 1 : 2) * config.vocab_size * width;
}

}  // namespace trainwright
