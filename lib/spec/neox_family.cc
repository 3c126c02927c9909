#include "lib/spec/neox_family.h"

#include <nlohmann/json.hpp>

#include "lib/spec/gelu_family.h"
#include "lib/spec/rope_json.h"
#include "lib/spec/shared_fields.h"

namespace trainwright {
namespace {

constexpr double kRotaryShare = 0.25;
constexpr DropoutField kDropouts[] = {{"attention_dropout", 0}, {"hidden_dropout", 0}};

class NeoxDescription final : public GeluFamily {
 public:
  const char* model_type() const override { return "gpt_neox"; }

  std::vector<ModelPreset> Presets() const override {
    static constexpr Shape kShapes[] = {
        {"neox-tiny", 128, 4, 4, 256, Activation::kGelu, true},
        {"neox-1.4b", 2048, 24, 16, 2048, Activation::kGelu, true},
    };
    std::vector<ModelPreset> presets;
    for (const Shape& shape : kShapes) {
      ModelConfig config = ConfigOf(shape);
      config.parallel_residual = true;
      config.rope.partial_rotary_factor = kRotaryShare;
      presets.push_back({config, "GPT-NeoX: a quarter of each head turns, parallel residual"});
    }
    return presets;
  }

  void Decode(const ConfigFields& fields, ModelConfig* config) const override {
    ReadShared(fields, config);
    ReadDropouts(fields, kDropouts, config);
    config->activation = ReadGelu(fields, "hidden_act", Activation::kGelu);
    config->biases = Biases::All();
    config->biases.qkv = config->biases.attention_out = fields.Flag("attention_bias", true);
    config->hidden_size = fields.RequiredInteger("hidden_size");
    config->intermediate_size = fields.RequiredInteger("intermediate_size");
    config->num_layers = ReadLayers(fields, "num_hidden_layers");
    config->num_heads = config->num_kv_heads = fields.RequiredInteger("num_attention_heads");
    if (config->hidden_size % config->num_heads != 0) {
      fields.Refuse("num_attention_heads", "must divide hidden_size");
    }
    config->head_dim = config->hidden_size / config->num_heads;
    config->max_positions = fields.Field("max_position_embeddings").is_null()
                                ? 2048
                                : fields.RequiredInteger("max_position_embeddings");
    config->rms_norm_eps = ReadNormEpsilon(fields, "layer_norm_eps", 1e-5);
    config->parallel_residual = fields.Flag("use_parallel_residual", true);
    config->tie_embeddings = fields.Flag("tie_word_embeddings", false);
    RopeParameters usual;
    usual.theta = fields.Number("rotary_emb_base", 10000.0);
    usual.partial_rotary_factor = fields.Number("rotary_pct", kRotaryShare);
    if (fields.Number("rope_theta", usual.theta) != usual.theta) {
      fields.Refuse("rope_theta", "differs from rotary_emb_base");
    }
    if (fields.Number("partial_rotary_factor", usual.partial_rotary_factor) != usual.partial_rotary_factor) {
      fields.Refuse("partial_rotary_factor", "differs from rotary_pct");
    }
    config->rope = ReadRope(fields, *config, usual);
  }

  nlohmann::ordered_json Encode(const ModelConfig& config) const override {
    nlohmann::ordered_json out;
    WriteShared(config, "GPTNeoXForCausalLM", &out);
    WriteDropouts(config, kDropouts, &out);
    WriteRopeOfAShare(config, &out);
    out["attention_bias"] = config.biases.qkv;
    out["hidden_act"] = GeluName(config.activation);
    out["hidden_size"] = config.hidden_size;
    out["intermediate_size"] = config.intermediate_size;
    out["layer_norm_eps"] = config.rms_norm_eps;
    out["max_position_embeddings"] = config.max_positions;
    out["num_attention_heads"] = config.num_heads;
    out["num_hidden_layers"] = config.num_layers;
    out["use_parallel_residual"] = config.parallel_residual;
    return out;
  }

  LoraBlocks lora_blocks() const override { return {.attention = {"attention"}, .mlp = {"mlp"}}; }
  OuterModules outer_modules() const override {
    return {.tables = {"gpt_neox.embed_in"},
            .head = "embed_out",
            .norms = {"gpt_neox.final_layer_norm"},
            .head_of_peft = "lm_head"};
  }

 protected:
  std::vector<Matrix> MatricesOfALayer(const ModelConfig& config) const override {
    const int64_t width = config.hidden_size, wide = config.intermediate_size;
    return {{"attention.query_key_value", kQkv, 3 * width, width},
            {"attention.dense", kAttentionOut, width, width},
            {"mlp.dense_h_to_4h", kUp, wide, width},
            {"mlp.dense_4h_to_h", kDown, width, wide}};
  }
  const char* layers_path() const override { return "gpt_neox.layers."; }
};

}  // namespace

const FamilyDescription& NeoxFamily() {
  static const NeoxDescription family;
  return family;
}

}  // namespace trainwright
