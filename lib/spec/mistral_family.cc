#include "lib/spec/mistral_family.h"

#include <nlohmann/json.hpp>

#include "lib/spec/config_fields.h"
#include "lib/spec/llama_like_family.h"

namespace trainwright {
namespace {

constexpr int64_t kWindow = 4096;

class MistralDescription final : public LlamaLikeFamily {
 public:
  const char* model_type() const override { return "mistral"; }

  std::vector<ModelPreset> Presets() const override {
    ModelConfig config = ConfigOf({"mistral-7b", 4096, 14336, 32, 32, 8, 128, 32768, false});  // v0.1
    config.layer_windows.assign(static_cast<size_t>(config.num_layers), kWindow);
    return {{config, kPublishedShape}};
  }

 protected:
  Absent absent() const override { return {.kv_heads = 8, .positions = 131072}; }
  const char* architecture() const override { return "MistralForCausalLM"; }
  void DecodeOwn(const ConfigFields& fields, ModelConfig* config) const override {
    const int64_t window = fields.Has("sliding_window") ? fields.Integer("sliding_window", 0) : kWindow;
    if (window < 0 || (window == 0 && !fields.Field("sliding_window").is_null())) {
      fields.Refuse("sliding_window", "must be positive, or null for none");
    }
    if (window > 0) config->layer_windows.assign(static_cast<size_t>(config->num_layers), window);
  }
  void EncodeOwn(const ModelConfig& config, nlohmann::ordered_json* out) const override {
    (*out)["sliding_window"] = WindowOrNull(config);
  }
};

}  // namespace

const FamilyDescription& MistralFamily() {
  static const MistralDescription family;
  return family;
}

}  // namespace trainwright
