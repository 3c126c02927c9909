#include "lib/spec/qwen2_family.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/spec/config_fields.h"
#include "lib/spec/llama_like_family.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kEpsilon = 1e-6;

/// The windows of the layers: by type of each, or from one layer on.
std::vector<int64_t> ReadWindows(const ConfigFields& fields, int64_t num_layers) {
  const bool used = fields.Flag("use_sliding_window", false);
  const bool present = fields.Has("sliding_window");
  const int64_t window = fields.Integer("sliding_window", present ? 0 : 4096);
  const int64_t first = fields.Integer("max_window_layers", 28);
  const json& types = fields.Field("layer_types");
  std::vector<int64_t> windows(static_cast<size_t>(num_layers));
  if (!types.is_null() && (!types.is_array() || static_cast<int64_t>(types.size()) != num_layers)) {
    fields.Refuse("layer_types", "must be a list of num_hidden_layers names");
  }
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const auto i = static_cast<size_t>(layer);
    bool windowed = types.is_null() ? used && (!present || window != 0) && layer >= first
                                    : types[i] == "sliding_attention";
    if (!types.is_null() && !windowed && types[i] != "full_attention") {
      fields.Refuse("layer_types", types[i].dump() + " is not supported");
    }
    if (windowed && (!used || window <= 0)) {
      fields.Refuse("sliding_window",
                    "must be positive, and use_sliding_window true, for layers with windows");
    }
    windows[i] = windowed ? window : 0;
  }
  const bool any = std::any_of(windows.begin(), windows.end(), [](int64_t size) { return size != 0; });
  return any ? windows : std::vector<int64_t>();
}

class Qwen2Description final : public LlamaLikeFamily {
 public:
  const char* model_type() const override { return "qwen2"; }

  std::vector<ModelPreset> Presets() const override {
    ModelConfig config = ConfigOf({"qwen2-0.5b", 896, 4864, 24, 14, 2, 64, 131072, true, 1000000.0});
    config.biases.qkv = true;
    config.rms_norm_eps = kEpsilon;
    return {{config, kPublishedShape}};
  }

 protected:
  Absent absent() const override { return {.kv_heads = 32, .positions = 32768}; }
  const char* architecture() const override { return "Qwen2ForCausalLM"; }
  void DecodeOwn(const ConfigFields& fields, ModelConfig* config) const override {
    config->biases.qkv = true;
    config->layer_windows = ReadWindows(fields, config->num_layers);
  }
  void EncodeOwn(const ModelConfig& config, ordered_json* out) const override {
    ordered_json types = ordered_json::array();
    int64_t first_windowed = config.num_layers;
    for (int64_t layer = config.num_layers; layer-- > 0;) {
      types.insert(types.begin(), WindowOf(config, layer) == 0 ? "full_attention" : "sliding_attention");
      if (WindowOf(config, layer) != 0) first_windowed = layer;
    }
    const ordered_json window = WindowOrNull(config);
    (*out)["layer_types"] = types;
    (*out)["max_window_layers"] = first_windowed;
    (*out)["sliding_window"] = window;
    (*out)["use_sliding_window"] = !window.is_null();
  }
};

}  // namespace

const FamilyDescription& Qwen2Family() {
  static const Qwen2Description family;
  return family;
}

}  // namespace trainwright
