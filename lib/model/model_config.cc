#include "lib/model/model_config.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"

namespace trainwright {
namespace {

using nlohmann::json;

struct Preset {
  const char* name;
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
  bool tied;
};

constexpr Preset kPresets[] = {
    {"llama-1m", 128, 384, 5, 4, 2, 32, 256, true},
    {"llama-5m", 256, 704, 7, 4, 2, 64, 512, true},
    {"llama-15m", 384, 1024, 10, 6, 2, 64, 512, true},
    {"llama-60m", 640, 1728, 13, 10, 5, 64, 1024, true},
    {"llama-125m", 768, 2048, 20, 12, 4, 64, 1024, true},
    {"llama-350m", 1280, 3456, 20, 20, 5, 64, 2048, false},
    {"llama-1b", 2048, 5632, 22, 32, 8, 64, 2048, false},
};

struct Gpt2Preset {
  const char* name;
  int64_t hidden, layers, heads, positions;
  Activation activation;
  bool bias;
};

constexpr Gpt2Preset kGpt2Presets[] = {
    {"gpt2-124m", 768, 12, 12, 1024, Activation::kGeluTanh, true},
    {"gpt2-350m", 1024, 24, 16, 1024, Activation::kGeluTanh, true},
    {"gpt2-774m", 1280, 36, 20, 1024, Activation::kGeluTanh, true},
    {"gpt2-1558m", 1600, 48, 25, 1024, Activation::kGeluTanh, true},
    {"nanogpt-10m", 384, 6, 6, 256, Activation::kGelu, false},
};

/// Reads fields of one config.json, naming file and field in errors.
class Reader {
 public:
  Reader(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  [[noreturn]] void Refuse(const std::string& field, const std::string& problem) const {
    throw Error(ErrorCode::kBadInput, path_, field + " " + problem, "",
                "this build computes the Llama family (RMSNorm, plain rotary positions, grouped queries, "
                "SwiGLU, no biases) and GPT-2");
  }
  /// The field, or null when absent.
  const json& Field(const char* name) const {
    static const json kNull;
    const auto found = object_.find(name);
    return found == object_.end() ? kNull : *found;
  }
  int64_t Integer(const char* name, int64_t absent) const {
    const json& value = Field(name);
    if (value.is_null()) return absent;
    if (!value.is_number_integer()) Refuse(name, "is no integer");
    return value.get<int64_t>();
  }
  int64_t RequiredInteger(const char* name) const {
    if (Field(name).is_null()) Refuse(name, "is missing");
    const int64_t value = Integer(name, 0);
    if (value <= 0) Refuse(name, "must be positive, not " + std::to_string(value));
    return value;
  }
  double Number(const char* name, double absent) const {
    const json& value = Field(name);
    if (value.is_null()) return absent;
    if (!value.is_number()) Refuse(name, "is no number");
    return value.get<double>();
  }
  bool Flag(const char* name, bool absent) const {
    const json& value = Field(name);
    if (value.is_null()) return absent;
    if (!value.is_boolean()) Refuse(name, "is neither true nor false");
    return value.get<bool>();
  }
  /// A token id, the first one where transformers stores a list, or -1.
  int64_t Id(const char* name) const {
    const json& value = Field(name);
    if (value.is_array() && !value.empty() && value[0].is_number_integer()) return value[0].get<int64_t>();
    return Integer(name, -1);
  }

 private:
  const json& object_;
  std::string path_;
};

/// The rotary base, from either spelling; scaled variants are refused.
double ReadRopeTheta(const Reader& reader) {
  double theta = reader.Number("rope_theta", 10000.0);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const json& rope = reader.Field(name);
    if (rope.is_null()) continue;
    if (!rope.is_object()) reader.Refuse(name, "is no object");
    for (const char* type : {"rope_type", "type"}) {
      if (rope.contains(type) && rope[type] != "default") {
        reader.Refuse(std::string(name) + "." + type, rope[type].dump() + " is not supported");
      }
    }
    if (rope.contains("partial_rotary_factor") && rope["partial_rotary_factor"] != 1.0) {
      reader.Refuse(std::string(name) + ".partial_rotary_factor", "is not supported");
    }
    if (rope.contains("rope_theta")) {
      if (!rope["rope_theta"].is_number()) reader.Refuse(std::string(name) + ".rope_theta", "is no number");
      theta = rope["rope_theta"].get<double>();
    }
  }
  return theta;
}

ModelConfig ConfigOf(const Preset& preset) {
  ModelConfig config;
  config.preset = preset.name;
  config.hidden_size = preset.hidden;
  config.intermediate_size = preset.intermediate;
  config.num_layers = preset.layers;
  config.num_heads = preset.heads;
  config.num_kv_heads = preset.kv_heads;
  config.head_dim = preset.head_dim;
  config.max_positions = preset.positions;
  config.tie_embeddings = preset.tied;
  return config;
}

ModelConfig ConfigOf(const Gpt2Preset& preset) {
  ModelConfig config;
  config.preset = preset.name;
  config.family = ModelFamily::kGpt2;
  config.hidden_size = preset.hidden;
  config.intermediate_size = 4 * preset.hidden;
  config.num_layers = preset.layers;
  config.num_heads = config.num_kv_heads = preset.heads;
  config.head_dim = preset.hidden / preset.heads;
  config.max_positions = preset.positions;
  config.activation = preset.activation;
  config.bias = preset.bias;
  config.tie_embeddings = true;
  return config;
}

std::vector<ModelConfig> PresetConfigs() {
  std::vector<ModelConfig> configs;
  for (const Preset& preset : kPresets) configs.push_back(ConfigOf(preset));
  for (const Gpt2Preset& preset : kGpt2Presets) configs.push_back(ConfigOf(preset));
  return configs;
}

nlohmann::ordered_json IdOrNull(int64_t id) {
  return id < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(id);
}

std::string EncodeGpt2(const ModelConfig& config) {
  nlohmann::ordered_json out;
  out["activation_function"] = config.activation == Activation::kGelu ? "gelu" : "gelu_new";
  out["architectures"] = {"GPT2LMHeadModel"};
  out["attn_pdrop"] = 0.0;
  if (!config.bias) out["bias"] = false;
  out["bos_token_id"] = IdOrNull(config.bos_id);
  out["dtype"] = "float32";
  out["embd_pdrop"] = 0.0;
  out["eos_token_id"] = IdOrNull(config.eos_id);
  out["initializer_range"] = 0.02;
  out["layer_norm_epsilon"] = config.rms_norm_eps;
  out["model_type"] = "gpt2";
  out["n_embd"] = config.hidden_size;
  out["n_head"] = config.num_heads;
  out["n_inner"] = config.intermediate_size;
  out["n_layer"] = config.num_layers;
  out["n_positions"] = config.max_positions;
  out["pad_token_id"] = IdOrNull(config.pad_id);
  out["reorder_and_upcast_attn"] = false;
  out["resid_pdrop"] = 0.0;
  out["scale_attn_by_inverse_layer_idx"] = false;
  out["scale_attn_weights"] = true;
  out["tie_word_embeddings"] = config.tie_embeddings;
  out["torch_dtype"] = "float32";
  out["use_cache"] = true;
  out["vocab_size"] = config.vocab_size;
  return out.dump(2) + "\n";
}

/// What both families' config.json share.
void ReadShared(const Reader& reader, ModelConfig* config) {
  if (!reader.Field("quantization_config").is_null())
    reader.Refuse("quantization_config", "is not supported");
  config->vocab_size = reader.RequiredInteger("vocab_size");
  config->bos_id = reader.Id("bos_token_id");
  config->eos_id = reader.Id("eos_token_id");
  config->pad_id = reader.Id("pad_token_id");
}

ModelConfig DecodeGpt2(const Reader& reader) {
  for (const auto& [name, usual] : {std::pair{"scale_attn_weights", true},
                                    std::pair{"scale_attn_by_inverse_layer_idx", false},
                                    std::pair{"reorder_and_upcast_attn", false},
                                    std::pair{"add_cross_attention", false}}) {
    if (reader.Flag(name, usual) != usual) {
      reader.Refuse(name, std::string(usual ? "false" : "true") + " is not supported");
    }
  }
  if (const json& pruned = reader.Field("pruned_heads"); !pruned.is_null() && !pruned.empty())
    reader.Refuse("pruned_heads", "is not supported");
  ModelConfig config;
  config.family = ModelFamily::kGpt2;
  ReadShared(reader, &config);
  const json& act = reader.Field("activation_function");
  if (act == "gelu") {
    config.activation = Activation::kGelu;
  } else if (act.is_null() || act == "gelu_new" || act == "gelu_pytorch_tanh" || act == "gelu_fast") {
    config.activation = Activation::kGeluTanh;
  } else {
    reader.Refuse("activation_function", act.dump() + " is not supported");
  }
  config.bias = reader.Flag("bias", true);
  config.hidden_size = reader.RequiredInteger("n_embd");
  if (config.hidden_size > INT32_MAX) reader.Refuse("n_embd", "is too large");
  config.intermediate_size = reader.Field("n_inner").is_null() ? 4 * config.hidden_size
                                                               : reader.RequiredInteger("n_inner");
  config.num_layers = reader.RequiredInteger("n_layer");
  config.num_heads = config.num_kv_heads = reader.RequiredInteger("n_head");
  if (config.hidden_size % config.num_heads != 0) reader.Refuse("n_head", "must divide n_embd");
  config.head_dim = config.hidden_size / config.num_heads;
  config.max_positions = reader.RequiredInteger("n_positions");
  config.rms_norm_eps = reader.Number("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = reader.Flag("tie_word_embeddings", true);
  return config;
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
  const int64_t width = config.hidden_size, heads = config.num_heads * config.head_dim,
                kv_heads = config.num_kv_heads * config.head_dim;
  const int64_t layer =
      2 * width * heads + 2 * width * kv_heads + 3 * width * config.intermediate_size + 2 * width;
  const int64_t table = config.vocab_size * width;
  if (config.family == ModelFamily::kGpt2) {
    const int64_t wide = config.intermediate_size, norm = config.bias ? 2 * width : width;
    const int64_t biases = config.bias ? 5 * width + wide : 0;
    const int64_t block = 4 * width * width + 2 * width * wide + biases + 2 * norm;
    return config.num_layers * block + norm + config.max_positions * width +
           (config.tie_embeddings ? 1 : 2) * table;
  }
  return config.num_layers * layer + width + (config.tie_embeddings ? 1 : 2) * table;
}

std::string EncodeConfigJson(const ModelConfig& config) {
  if (config.family == ModelFamily::kGpt2) return EncodeGpt2(config);
  nlohmann::ordered_json out;
  out["architectures"] = {"LlamaForCausalLM"};
  out["attention_bias"] = false;
  out["attention_dropout"] = 0.0;
  out["bos_token_id"] = IdOrNull(config.bos_id);
  out["dtype"] = "float32";
  out["eos_token_id"] = IdOrNull(config.eos_id);
  out["head_dim"] = config.head_dim;
  out["hidden_act"] = "silu";
  out["hidden_size"] = config.hidden_size;
  out["initializer_range"] = 0.02;
  out["intermediate_size"] = config.intermediate_size;
  out["max_position_embeddings"] = config.max_positions;
  out["mlp_bias"] = false;
  out["model_type"] = "llama";
  out["num_attention_heads"] = config.num_heads;
  out["num_hidden_layers"] = config.num_layers;
  out["num_key_value_heads"] = config.num_kv_heads;
  out["pad_token_id"] = IdOrNull(config.pad_id);
  out["rms_norm_eps"] = config.rms_norm_eps;
  // Both spellings: transformers 4.x reads the first and torch_dtype, 5.x the second and dtype.
  out["rope_theta"] = config.rope_theta;
  out["rope_parameters"] = {{"rope_theta", config.rope_theta}, {"rope_type", "default"}};
  out["tie_word_embeddings"] = config.tie_embeddings;
  out["torch_dtype"] = "float32";
  out["use_cache"] = true;
  out["vocab_size"] = config.vocab_size;
  return out.dump(2) + "\n";
}

ModelConfig DecodeConfigJson(const std::string& text, const std::string& path) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  const Reader reader(object, path);
  if (reader.Field("model_type") == "gpt2") return DecodeGpt2(reader);
  if (reader.Field("model_type") != "llama") {
    reader.Refuse("model_type", reader.Field("model_type").dump() + " is not supported");
  }
  if (const json& act = reader.Field("hidden_act"); !act.is_null() && act != "silu") {
    reader.Refuse("hidden_act", act.dump() + " is not supported");
  }
  for (const char* name : {"attention_bias", "mlp_bias"}) {
    if (reader.Flag(name, false)) reader.Refuse(name, "true is not supported");
  }
  if (reader.Number("attention_dropout", 0.0) != 0.0)
    reader.Refuse("attention_dropout", "other than 0 is not supported");
  if (!reader.Field("sliding_window").is_null()) reader.Refuse("sliding_window", "is not supported");
  if (reader.Number("partial_rotary_factor", 1.0) != 1.0)
    reader.Refuse("partial_rotary_factor", "is not supported");

  ModelConfig config;
  ReadShared(reader, &config);
  config.hidden_size = reader.RequiredInteger("hidden_size");
  config.intermediate_size = reader.RequiredInteger("intermediate_size");
  config.num_layers = reader.RequiredInteger("num_hidden_layers");
  config.num_heads = reader.RequiredInteger("num_attention_heads");
  config.num_kv_heads = reader.Integer("num_key_value_heads", config.num_heads);
  config.head_dim = reader.Integer("head_dim", config.hidden_size / config.num_heads);
  config.max_positions = reader.Integer("max_position_embeddings", 2048);
  config.rms_norm_eps = reader.Number("rms_norm_eps", 1e-6);
  config.rope_theta = ReadRopeTheta(reader);
  config.tie_embeddings = reader.Flag("tie_word_embeddings", false);
  if (config.num_kv_heads <= 0 || config.num_heads % config.num_kv_heads != 0) {
    reader.Refuse("num_key_value_heads", "must divide num_attention_heads");
  }
  if (config.head_dim <= 0 || config.head_dim % 2 != 0)
    reader.Refuse("head_dim", "must be positive and even");
  return config;
}

}  // namespace trainwright
