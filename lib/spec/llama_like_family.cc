#include "lib/spec/llama_like_family.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/spec/rope_json.h"
#include "lib/spec/shared_fields.h"

namespace trainwright {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr DropoutField kDropouts[] = {{"attention_dropout", 0}};

}  // namespace

ModelConfig LlamaLikeFamily::ConfigOf(const Shape& shape) const {
  ModelConfig config;
  config.preset = shape.name;
  config.family = this;
  config.hidden_size = shape.hidden;
  config.intermediate_size = shape.intermediate;
  config.num_layers = shape.layers;
  config.num_heads = shape.heads;
  config.num_kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.max_positions = shape.positions;
  config.tie_embeddings = shape.tied;
  config.rope.theta = shape.rope_theta;
  return config;
}

std::vector<TransformerFamily::Matrix> LlamaLikeFamily::MatricesOfALayer(const ModelConfig& config) const {
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const int64_t queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  return {{"self_attn.q_proj", kQkv, queries, width}, {"self_attn.k_proj", kQkv, keys, width},
          {"self_attn.v_proj", kQkv, keys, width},    {"self_attn.o_proj", kAttentionOut, width, queries},
          {"mlp.gate_proj", kUp, wide, width},        {"mlp.up_proj", kUp, wide, width},
          {"mlp.down_proj", kDown, width, wide}};
}

ordered_json LlamaLikeFamily::Encode(const ModelConfig& config) const {
  ordered_json out;
  WriteShared(config, architecture(), &out);
  WriteDropouts(config, kDropouts, &out);
  WriteRope(config, &out);
  out["head_dim"] = config.head_dim;
  out["hidden_act"] = "silu";
  out["hidden_size"] = config.hidden_size;
  out["intermediate_size"] = config.intermediate_size;
  out["max_position_embeddings"] = config.max_positions;
  out["num_attention_heads"] = config.num_heads;
  out["num_hidden_layers"] = config.num_layers;
  out["num_key_value_heads"] = config.num_kv_heads;
  out["rms_norm_eps"] = config.rms_norm_eps;
  EncodeOwn(config, &out);
  return out;
}

void LlamaLikeFamily::Decode(const ConfigFields& fields, ModelConfig* config) const {
  const json& act = fields.Field("hidden_act");
  if (!act.is_null() && act != "silu" && act != "swish") {
    fields.Refuse("hidden_act", act.dump() + " is not supported");
  }
  ReadShared(fields, config);
  ReadDropouts(fields, kDropouts, config);
  config->hidden_size = fields.RequiredInteger("hidden_size");
  config->intermediate_size = fields.RequiredInteger("intermediate_size");
  config->num_layers = ReadLayers(fields, "num_hidden_layers");
  config->num_heads = fields.RequiredInteger("num_attention_heads");
  const Absent absent = this->absent();
  // null means as many as num_attention_heads.
  const bool as_heads = absent.kv_heads == 0 || fields.Has("num_key_value_heads");
  config->num_kv_heads =
      fields.Integer("num_key_value_heads", as_heads ? config->num_heads : absent.kv_heads);
  config->head_dim = fields.Integer("head_dim", config->hidden_size / config->num_heads);
  config->max_positions = fields.Field("max_position_embeddings").is_null()
                              ? absent.positions
                              : fields.RequiredInteger("max_position_embeddings");
  config->rms_norm_eps = ReadNormEpsilon(fields, "rms_norm_eps", 1e-6);
  config->tie_embeddings = fields.Flag("tie_word_embeddings", false);
  DecodeOwn(fields, config);
  if (config->num_kv_heads <= 0 || config->num_heads % config->num_kv_heads != 0) {
    fields.Refuse("num_key_value_heads", "must divide num_attention_heads");
  }
  if (config->head_dim <= 0 || config->head_dim % 2 != 0 || config->head_dim > INT32_MAX) {
    fields.Refuse("head_dim", "must be positive and even");
  }
  config->rope = ReadRope(fields, *config, {});
  if (config->rope.partial_rotary_factor != 1.0) {
    fields.Refuse("partial_rotary_factor", "other than 1 is not supported");
  }
}

ordered_json WindowOrNull(const ModelConfig& config) {
  int64_t largest = 0;
  for (const int64_t window : config.layer_windows) largest = std::max(largest, window);
  return largest == 0 ? ordered_json() : ordered_json(largest);
}

}  // namespace trainwright
