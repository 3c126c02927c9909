#include "lib/spec/gpt2_family.h"

#include <nlohmann/json.hpp>

#include "lib/spec/gelu_family.h"
#include "lib/spec/shared_fields.h"

namespace trainwright {
namespace {

constexpr DropoutField kDropouts[] = {{"attn_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"resid_pdrop", 0.1}};

class Gpt2Description final : public GeluFamily {
 public:
  const char* model_type() const override { return "gpt2"; }

  std::vector<ModelPreset> Presets() const override {
    static constexpr Shape kPublished[] = {
        {"gpt2-124m", 768, 12, 12, 1024, Activation::kGeluTanh, true},
        {"gpt2-350m", 1024, 24, 16, 1024, Activation::kGeluTanh, true},
        {"gpt2-774m", 1280, 36, 20, 1024, Activation::kGeluTanh, true},
        {"gpt2-1558m", 1600, 48, 25, 1024, Activation::kGeluTanh, true},
    };
    // nanoGPT's character-level model.
    static constexpr Shape kNano = {"nanogpt-10m", 384, 6, 6, 256, Activation::kGelu, false};
    std::vector<ModelPreset> presets;
    for (const Shape& shape : kPublished) presets.push_back({ConfigOf(shape), kPublishedShape});
    presets.push_back({ConfigOf(kNano), "6 layers, 384 wide, no biases"});
    for (ModelPreset& preset : presets) preset.config.tie_embeddings = true;
    return presets;
  }

  void Decode(const ConfigFields& fields, ModelConfig* config) const override {
    fields.RequireFlag("scale_attn_weights", true);
    fields.RequireFlag("scale_attn_by_inverse_layer_idx", false);
    fields.RequireFlag("reorder_and_upcast_attn", false);
    ReadShared(fields, config);
    ReadDropouts(fields, kDropouts, config);
    config->activation = ReadGelu(fields, "activation_function", Activation::kGeluTanh);
    if (fields.Flag("bias", true)) config->biases = Biases::All();
    config->hidden_size = fields.RequiredInteger("n_embd");
    config->intermediate_size =
        fields.Field("n_inner").is_null() ? 4 * config->hidden_size : fields.RequiredInteger("n_inner");
    config->num_layers = ReadLayers(fields, "n_layer");
    config->num_heads = config->num_kv_heads = fields.RequiredInteger("n_head");
    if (config->hidden_size % config->num_heads != 0) fields.Refuse("n_head", "must divide n_embd");
    config->head_dim = config->hidden_size / config->num_heads;
    config->max_positions = fields.RequiredInteger("n_positions");
    config->rms_norm_eps = ReadNormEpsilon(fields, "layer_norm_epsilon", 1e-5);
    config->tie_embeddings = fields.Flag("tie_word_embeddings", true);
  }

  nlohmann::ordered_json Encode(const ModelConfig& config) const override {
    nlohmann::ordered_json out;
    WriteShared(config, "GPT2LMHeadModel", &out);
    WriteDropouts(config, kDropouts, &out);
    out["activation_function"] = GeluName(config.activation);
    if (!config.biases.qkv) out["bias"] = false;
    out["layer_norm_epsilon"] = config.rms_norm_eps;
    out["n_embd"] = config.hidden_size;
    out["n_head"] = config.num_heads;
    out["n_inner"] = config.intermediate_size;
    out["n_layer"] = config.num_layers;
    out["n_positions"] = config.max_positions;
    out["reorder_and_upcast_attn"] = false;
    out["scale_attn_by_inverse_layer_idx"] = false;
    out["scale_attn_weights"] = true;
    return out;
  }

  LoraBlocks lora_blocks() const override { return {.attention = {"attn"}, .mlp = {"mlp"}}; }
  OuterModules outer_modules() const override {
    return {
        .tables = {"transformer.wte", "transformer.wpe"}, .head = "lm_head", .norms = {"transformer.ln_f"}};
  }

 protected:
  std::vector<Matrix> MatricesOfALayer(const ModelConfig& config) const override {
    const int64_t width = config.hidden_size, wide = config.intermediate_size;
    return {{"attn.c_attn", kQkv, 3 * width, width},
            {"attn.c_proj", kAttentionOut, width, width},
            {"mlp.c_fc", kUp, wide, width},
            {"mlp.c_proj", kDown, width, wide}};
  }
  const char* layers_path() const override { return "transformer.h."; }
  bool learns_positions() const override { return true; }
};

}  // namespace

const FamilyDescription& Gpt2Family() {
  static const Gpt2Description family;
  return family;
}

}  // namespace trainwright
