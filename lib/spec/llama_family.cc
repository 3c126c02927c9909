#include "lib/spec/llama_family.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lib/spec/config_fields.h"
#include "lib/spec/llama_like_family.h"

namespace trainwright {
namespace {

class LlamaDescription final : public LlamaLikeFamily {
 public:
  const char* model_type() const override { return "llama"; }

  std::vector<ModelPreset> Presets() const override {
    static constexpr Shape kOwn[] = {
        {"llama-1m", 128, 384, 5, 4, 2, 32, 256, true},
        {"llama-5m", 256, 704, 7, 4, 2, 64, 512, true},
        {"llama-15m", 384, 1024, 10, 6, 2, 64, 512, true},
        {"llama-60m", 640, 1728, 13, 10, 5, 64, 1024, true},
        {"llama-125m", 768, 2048, 20, 12, 4, 64, 1024, true},
        {"llama-350m", 1280, 3456, 20, 20, 5, 64, 2048, false},
        {"llama-1b", 2048, 5632, 22, 32, 8, 64, 2048, false},
    };
    static constexpr Shape kPublished[] = {
        {"smollm2-135m", 576, 1536, 30, 9, 3, 64, 8192, true, 100000.0},
        {"smollm2-360m", 960, 2560, 32, 15, 5, 64, 8192, true, 100000.0},
        {"tinyllama-1.1b", 2048, 5632, 22, 32, 4, 64, 2048, false},
    };
    std::vector<ModelPreset> presets;
    for (const Shape& shape : kOwn) {
      ModelPreset preset = {.config = ConfigOf(shape), .note = "parameters besides embeddings"};
      preset.default_on_cpu = preset.config.preset == "llama-1m";
      preset.default_on_gpu = preset.config.preset == "llama-125m";
      presets.push_back(std::move(preset));
    }
    for (const Shape& shape : kPublished) {
      presets.push_back({.config = ConfigOf(shape), .note = kPublishedShape});
    }
    return presets;
  }

  std::string ProblemInTransformers(const ModelConfig& config) const override {
    return config.hidden_size % config.num_heads == 0
               ? ""
               : "hidden_size is not a multiple of num_attention_heads, as it asks of Llama models";
  }

 protected:
  Absent absent() const override { return {.kv_heads = 0, .positions = 2048}; }
  const char* architecture() const override { return "LlamaForCausalLM"; }
  void DecodeOwn(const ConfigFields& fields, ModelConfig* config) const override {
    config->biases.qkv = config->biases.attention_out = fields.Flag("attention_bias", false);
    config->biases.mlp = fields.Flag("mlp_bias", false);
  }
  void EncodeOwn(const ModelConfig& config, nlohmann::ordered_json* out) const override {
    (*out)["attention_bias"] = config.biases.qkv;
    (*out)["mlp_bias"] = config.biases.mlp;
  }
};

}  // namespace

const FamilyDescription& LlamaFamily() {
  static const LlamaDescription family;
  return family;
}

}  // namespace trainwright
