#include "lib/spec/config_json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/error.h"
#include "lib/spec/config_fields.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostLayers = 1 << 16;

struct FamilyName {
  ModelFamily family;
  const char *model_type, *architecture;
};
constexpr FamilyName kFamilies[] = {
    {ModelFamily::kLlama, "llama", "LlamaForCausalLM"},
    {ModelFamily::kMistral, "mistral", "MistralForCausalLM"},
    {ModelFamily::kQwen2, "qwen2", "Qwen2ForCausalLM"},
    {ModelFamily::kGpt2, "gpt2", "GPT2LMHeadModel"},
    {ModelFamily::kNeox, "gpt_neox", "GPTNeoXForCausalLM"},
};

struct RopeTypeName {
  RopeType type;
  const char* name;
};
constexpr RopeTypeName kRopeTypes[] = {{RopeType::kDefault, "default"},   {RopeType::kLinear, "linear"},
                                       {RopeType::kDynamic, "dynamic"},   {RopeType::kYarn, "yarn"},
                                       {RopeType::kLongrope, "longrope"}, {RopeType::kLlama3, "llama3"}};

/// transformers' names of the two kinds of GELU; the first is the one that is written.
constexpr const char* kErfNames[] = {"gelu", "gelu_python"};
constexpr const char* kTanhNames[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh",
                                      "gelu_accurate"};

Activation ReadGelu(const ConfigFields& fields, const char* name, Activation absent) {
  const json& value = fields.Field(name);
  const auto is = [&](const char* known) { return value == known; };
  if (value.is_null()) return absent;
  if (std::any_of(std::begin(kErfNames), std::end(kErfNames), is)) return Activation::kGelu;
  if (std::any_of(std::begin(kTanhNames), std::end(kTanhNames), is)) return Activation::kGeluTanh;
  fields.Refuse(name, value.dump() + " is not supported");
}

const char* GeluName(Activation activation) {
  return activation == Activation::kGelu ? kErfNames[0] : kTanhNames[0];
}

/// A scaling's own numbers, beside its type.
void ReadScaling(const ConfigFields& fields, RopeParameters* rope) {
  const auto positive = [&](const char* name, double value) {
    if (!(value > 0)) fields.Refuse(name, "must be positive");
    return value;
  };
  const auto optional = [&](const char* name) -> std::optional<double> {
    if (fields.Field(name).is_null()) return std::nullopt;
    return fields.Number(name, 0);
  };
  const auto factors = [&](const char* name) {
    std::vector<double> values;
    const json& list = fields.Field(name);
    if (!list.is_array()) fields.Refuse(name, "is no list of numbers");
    for (const json& value : list) {
      if (!value.is_number()) fields.Refuse(name, "is no list of numbers");
      values.push_back(positive(name, value.get<double>()));
    }
    return values;
  };
  if (rope->type == RopeType::kDefault) return;
  const bool may_lack_factor = rope->type == RopeType::kYarn || rope->type == RopeType::kLongrope;
  if (may_lack_factor && fields.Field("factor").is_null()) {
    rope->factor = rope->factor / static_cast<double>(rope->original_positions);  // of the whole context
  } else {
    rope->factor = positive("factor", fields.RequiredNumber("factor"));
  }
  if (rope->type == RopeType::kYarn) {
    const auto or_usual = [](double value, double usual) { return value == 0 ? usual : value; };
    rope->attention_factor = optional("attention_factor");
    rope->mscale = optional("mscale");
    rope->mscale_all_dim = optional("mscale_all_dim");
    rope->beta_fast = positive("beta_fast", or_usual(fields.Number("beta_fast", 0), 32));
    rope->beta_slow = positive("beta_slow", or_usual(fields.Number("beta_slow", 0), 1));
    rope->truncate = fields.Flag("truncate", true);
  } else if (rope->type == RopeType::kLongrope) {
    rope->attention_factor = optional("attention_factor");
    rope->short_factors = factors("short_factor");
    rope->long_factors = factors("long_factor");
  } else if (rope->type == RopeType::kLlama3) {
    rope->low_freq_factor = positive("low_freq_factor", fields.RequiredNumber("low_freq_factor"));
    rope->high_freq_factor = positive("high_freq_factor", fields.RequiredNumber("high_freq_factor"));
    if (rope->low_freq_factor == rope->high_freq_factor) {
      fields.Refuse("high_freq_factor", "must differ from low_freq_factor");
    }
  }
}

/// Rotary positions of either spelling. `config` has the sizes.
/// \param usual what absent fields mean
RopeParameters ReadRope(const ConfigFields& fields, const std::string& path, const ModelConfig& config,
                        const RopeParameters& usual) {
  RopeParameters rope = usual;
  rope.theta = fields.Number("rope_theta", usual.theta);
  rope.partial_rotary_factor = fields.Number("partial_rotary_factor", usual.partial_rotary_factor);
  const json &scaling = fields.Field("rope_scaling"), &parameters = fields.Field("rope_parameters");
  const char* name =
      scaling.is_null() || scaling.empty() ? "rope_parameters" : "rope_scaling";  // as transformers
  const json& object = fields.Field(name);
  if (!object.is_null() && !object.is_object()) fields.Refuse(name, "is no object");
  static const json kEmpty = json::object();
  const ConfigFields inner(object.is_null() ? kEmpty : object, path, std::string(name) + ".");
  const json& type = inner.Field(inner.Field("rope_type").is_null() ? "type" : "rope_type");
  inner.Field("type");
  const auto found =
      std::find_if(std::begin(kRopeTypes), std::end(kRopeTypes), [&](const RopeTypeName& known) {
        return type.is_null() ? known.type == RopeType::kDefault : type == known.name;
      });
  if (found == std::end(kRopeTypes)) inner.Refuse("rope_type", type.dump() + " is not supported");
  rope.type = found->type;
  rope.theta = inner.Number("rope_theta", rope.theta);
  if (parameters.is_object() && parameters.value("rope_theta", json(rope.theta)) != rope.theta) {
    fields.Refuse("rope_parameters.rope_theta", "differs from the rope_theta of rope_scaling");
  }
  rope.partial_rotary_factor = inner.Number("partial_rotary_factor", rope.partial_rotary_factor);
  if (!(rope.theta > 0)) fields.Refuse("rope_theta", "must be positive");
  if (!(rope.partial_rotary_factor > 0 && rope.partial_rotary_factor <= 1) ||
      rope.pairs(config.head_dim) < 1) {
    fields.Refuse("partial_rotary_factor", "must leave at least one element of a head, and at most all");
  }
  if (2 * rope.pairs(config.head_dim) > config.head_dim)
    fields.Refuse("head_dim", "must be even to turn whole");
  if (rope.type == RopeType::kDynamic) {
    rope.original_positions = config.max_positions;
    if (rope.RotaryShare(config.head_dim) <= 2) fields.Refuse("head_dim", "is too small for dynamic scaling");
  } else if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope ||
             rope.type == RopeType::kLlama3) {
    rope.original_positions = inner.Integer("original_max_position_embeddings", config.max_positions);
    rope.original_positions = fields.Integer("original_max_position_embeddings", rope.original_positions);
    if (rope.original_positions <= 0) inner.Refuse("original_max_position_embeddings", "must be positive");
  }
  if (rope.type == RopeType::kYarn && rope.theta == 1.0)
    fields.Refuse("rope_theta", "must not be 1 under yarn");
  rope.factor = static_cast<double>(config.max_positions);  // what a factor that is absent is derived from
  ReadScaling(inner, &rope);
  if (rope.type == RopeType::kDefault) rope.factor = usual.factor;
  inner.RefuseUnreadWithoutExceptions();
  const auto pairs = static_cast<size_t>(rope.pairs(config.head_dim));
  if (rope.type == RopeType::kLongrope &&
      (rope.short_factors.size() != pairs || rope.long_factors.size() != pairs)) {
    inner.Refuse("short_factor and long_factor", "must have " + std::to_string(pairs) + " numbers");
  }
  return rope;
}

/// \param with_theta the spelling of 5.x, rope_parameters
ordered_json RopeJson(const RopeParameters& rope, bool with_theta, bool with_share) {
  ordered_json out;
  const auto optional = [&](const char* name, const std::optional<double>& value) {
    if (value) out[name] = *value;
  };
  if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope) {
    optional("attention_factor", rope.attention_factor);
  }
  if (rope.type == RopeType::kYarn) {
    out["beta_fast"] = rope.beta_fast;
    out["beta_slow"] = rope.beta_slow;
  }
  if (rope.type != RopeType::kDefault) out["factor"] = rope.factor;
  if (rope.type == RopeType::kLlama3) {
    out["high_freq_factor"] = rope.high_freq_factor;
    out["low_freq_factor"] = rope.low_freq_factor;
  }
  if (rope.type == RopeType::kLongrope) {
    out["long_factor"] = rope.long_factors;
    out["short_factor"] = rope.short_factors;
  }
  if (rope.type == RopeType::kYarn) {
    optional("mscale", rope.mscale);
    optional("mscale_all_dim", rope.mscale_all_dim);
    out["truncate"] = rope.truncate;
  }
  if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope || rope.type == RopeType::kLlama3) {
    out["original_max_position_embeddings"] = rope.original_positions;
  }
  if (with_share) out["partial_rotary_factor"] = rope.partial_rotary_factor;
  if (with_theta) out["rope_theta"] = rope.theta;
  const auto named = std::find_if(std::begin(kRopeTypes), std::end(kRopeTypes),
                                  [&](const RopeTypeName& known) { return known.type == rope.type; });
  out["rope_type"] = named->name;
  return out;
}

/// Both spellings: transformers 4.x reads rope_theta, rope_scaling and torch_dtype, 5.x rope_parameters and
/// dtype.
void WriteRope(const ModelConfig& config, ordered_json* out) {
  const bool with_share = config.family == ModelFamily::kNeox;
  (*out)["rope_parameters"] = RopeJson(config.rope, /*with_theta=*/true, with_share);
  if (config.rope.type != RopeType::kDefault) {
    (*out)["rope_scaling"] = RopeJson(config.rope, /*with_theta=*/false, /*with_share=*/false);
  }
  if (with_share) {
    (*out)["rotary_emb_base"] = config.rope.theta;
    (*out)["rotary_pct"] = config.rope.partial_rotary_factor;
  } else {
    (*out)["rope_theta"] = config.rope.theta;
  }
}

ordered_json IdOrNull(int64_t id) {
  return id < 0 ? ordered_json() : ordered_json(id);
}

/// What all families' config.json share.
void WriteShared(const ModelConfig& config, ordered_json* out) {
  const auto named = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                  [&](const FamilyName& known) { return known.family == config.family; });
  (*out)["architectures"] = {named->architecture};
  (*out)["bos_token_id"] = IdOrNull(config.bos_id);
  (*out)["dtype"] = "float32";
  (*out)["eos_token_id"] = IdOrNull(config.eos_id);
  (*out)["initializer_range"] = 0.02;
  (*out)["model_type"] = named->model_type;
  (*out)["pad_token_id"] = IdOrNull(config.pad_id);
  (*out)["tie_word_embeddings"] = config.tie_embeddings;
  (*out)["torch_dtype"] = "float32";
  (*out)["use_cache"] = true;
  (*out)["vocab_size"] = config.vocab_size;
}

void ReadShared(const ConfigFields& fields, ModelConfig* config) {
  if (!fields.Field("quantization_config").is_null()) {
    fields.Refuse("quantization_config", "is not supported");
  }
  config->vocab_size = fields.RequiredInteger("vocab_size");
  config->bos_id = fields.Id("bos_token_id");
  config->eos_id = fields.Id("eos_token_id");
  config->pad_id = fields.Id("pad_token_id");
}

int64_t ReadLayers(const ConfigFields& fields, const char* name) {
  const int64_t layers = fields.RequiredInteger(name);
  if (layers > kMostLayers) fields.Refuse(name, "is too large");
  return layers;
}

ordered_json EncodeGpt2(const ModelConfig& config) {
  ordered_json out;
  WriteShared(config, &out);
  out["activation_function"] = GeluName(config.activation);
  out["attn_pdrop"] = 0.0;
  if (!config.biases.qkv) out["bias"] = false;
  out["embd_pdrop"] = 0.0;
  out["layer_norm_epsilon"] = config.rms_norm_eps;
  out["n_embd"] = config.hidden_size;
  out["n_head"] = config.num_heads;
  out["n_inner"] = config.intermediate_size;
  out["n_layer"] = config.num_layers;
  out["n_positions"] = config.max_positions;
  out["reorder_and_upcast_attn"] = false;
  out["resid_pdrop"] = 0.0;
  out["scale_attn_by_inverse_layer_idx"] = false;
  out["scale_attn_weights"] = true;
  return out;
}

ModelConfig DecodeGpt2(const ConfigFields& fields) {
  fields.RequireFlag("scale_attn_weights", true);
  fields.RequireFlag("scale_attn_by_inverse_layer_idx", false);
  fields.RequireFlag("reorder_and_upcast_attn", false);
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) fields.Field(dropout);
  ModelConfig config;
  config.family = ModelFamily::kGpt2;
  ReadShared(fields, &config);
  config.activation = ReadGelu(fields, "activation_function", Activation::kGeluTanh);
  if (fields.Flag("bias", true)) config.biases = Biases::All();
  config.hidden_size = fields.RequiredInteger("n_embd");
  config.intermediate_size =
      fields.Field("n_inner").is_null() ? 4 * config.hidden_size : fields.RequiredInteger("n_inner");
  config.num_layers = ReadLayers(fields, "n_layer");
  config.num_heads = config.num_kv_heads = fields.RequiredInteger("n_head");
  if (config.hidden_size % config.num_heads != 0) fields.Refuse("n_head", "must divide n_embd");
  config.head_dim = config.hidden_size / config.num_heads;
  config.max_positions = fields.RequiredInteger("n_positions");
  config.rms_norm_eps = fields.Number("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = fields.Flag("tie_word_embeddings", true);
  return config;
}

ordered_json EncodeNeox(const ModelConfig& config) {
  ordered_json out;
  WriteShared(config, &out);
  WriteRope(config, &out);
  out["attention_bias"] = config.biases.qkv;
  out["attention_dropout"] = 0.0;
  out["hidden_act"] = GeluName(config.activation);
  out["hidden_dropout"] = 0.0;
  out["hidden_size"] = config.hidden_size;
  out["intermediate_size"] = config.intermediate_size;
  out["layer_norm_eps"] = config.rms_norm_eps;
  out["max_position_embeddings"] = config.max_positions;
  out["num_attention_heads"] = config.num_heads;
  out["num_hidden_layers"] = config.num_layers;
  out["use_parallel_residual"] = config.parallel_residual;
  return out;
}

ModelConfig DecodeNeox(const ConfigFields& fields, const std::string& path) {
  for (const char* dropout : {"attention_dropout", "hidden_dropout"}) fields.Field(dropout);
  ModelConfig config;
  config.family = ModelFamily::kNeox;
  ReadShared(fields, &config);
  config.activation = ReadGelu(fields, "hidden_act", Activation::kGelu);
  config.biases = Biases::All();
  config.biases.qkv = config.biases.attention_out = fields.Flag("attention_bias", true);
  config.hidden_size = fields.RequiredInteger("hidden_size");
  config.intermediate_size = fields.RequiredInteger("intermediate_size");
  config.num_layers = ReadLayers(fields, "num_hidden_layers");
  config.num_heads = config.num_kv_heads = fields.RequiredInteger("num_attention_heads");
  if (config.hidden_size % config.num_heads != 0) {
    fields.Refuse("num_attention_heads", "must divide hidden_size");
  }
  config.head_dim = config.hidden_size / config.num_heads;
  config.max_positions = fields.Field("max_position_embeddings").is_null()
                             ? 2048
                             : fields.RequiredInteger("max_position_embeddings");
  config.rms_norm_eps = fields.Number("layer_norm_eps", 1e-5);
  config.parallel_residual = fields.Flag("use_parallel_residual", true);
  config.tie_embeddings = fields.Flag("tie_word_embeddings", false);
  RopeParameters usual;
  usual.theta = fields.Number("rotary_emb_base", 10000.0);
  usual.partial_rotary_factor = fields.Number("rotary_pct", 0.25);
  if (fields.Number("rope_theta", usual.theta) != usual.theta) {
    fields.Refuse("rope_theta", "differs from rotary_emb_base");
  }
  if (fields.Number("partial_rotary_factor", usual.partial_rotary_factor) != usual.partial_rotary_factor) {
    fields.Refuse("partial_rotary_factor", "differs from rotary_pct");
  }
  config.rope = ReadRope(fields, path, config, usual);
  return config;
}

/// The window of the layers that have one, or 0.
int64_t LargestWindow(const ModelConfig& config) {
  int64_t largest = 0;
  for (const int64_t window : config.layer_windows) largest = std::max(largest, window);
  return largest;
}

ordered_json EncodeLlamaLike(const ModelConfig& config) {
  ordered_json out;
  WriteShared(config, &out);
  WriteRope(config, &out);
  out["attention_dropout"] = 0.0;
  out["head_dim"] = config.head_dim;
  out["hidden_act"] = "silu";
  out["hidden_size"] = config.hidden_size;
  out["intermediate_size"] = config.intermediate_size;
  out["max_position_embeddings"] = config.max_positions;
  out["num_attention_heads"] = config.num_heads;
  out["num_hidden_layers"] = config.num_layers;
  out["num_key_value_heads"] = config.num_kv_heads;
  out["rms_norm_eps"] = config.rms_norm_eps;
  const int64_t window = LargestWindow(config);
  const ordered_json window_or_null = window == 0 ? ordered_json() : ordered_json(window);
  if (config.family == ModelFamily::kLlama) {
    out["attention_bias"] = config.biases.qkv;
    out["mlp_bias"] = config.biases.mlp;
  } else if (config.family == ModelFamily::kMistral) {
    out["sliding_window"] = window_or_null;
  } else {
    ordered_json types = ordered_json::array();
    int64_t first_windowed = config.num_layers;
    for (int64_t layer = config.num_layers; layer-- > 0;) {
      types.insert(types.begin(), config.window(layer) == 0 ? "full_attention" : "sliding_attention");
      if (config.window(layer) != 0) first_windowed = layer;
    }
    out["layer_types"] = types;
    out["max_window_layers"] = first_windowed;
    out["sliding_window"] = window_or_null;
    out["use_sliding_window"] = window != 0;
  }
  return out;
}

/// The windows of Qwen2's layers: by type of each, or from one layer on.
std::vector<int64_t> ReadQwen2Windows(const ConfigFields& fields, int64_t num_layers) {
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

ModelConfig DecodeLlamaLike(ModelFamily family, const ConfigFields& fields, const std::string& path) {
  const json& act = fields.Field("hidden_act");
  if (!act.is_null() && act != "silu" && act != "swish") {
    fields.Refuse("hidden_act", act.dump() + " is not supported");
  }
  if (fields.Number("attention_dropout", 0.0) != 0.0) {
    fields.Refuse("attention_dropout", "other than 0 is not supported");
  }
  ModelConfig config;
  config.family = family;
  ReadShared(fields, &config);
  config.hidden_size = fields.RequiredInteger("hidden_size");
  config.intermediate_size = fields.RequiredInteger("intermediate_size");
  config.num_layers = ReadLayers(fields, "num_hidden_layers");
  config.num_heads = fields.RequiredInteger("num_attention_heads");
  const bool llama = family == ModelFamily::kLlama, mistral = family == ModelFamily::kMistral;
  // transformers' defaults of a field that is absent; null means as many as num_attention_heads.
  const int64_t kv_heads = llama || fields.Has("num_key_value_heads") ? config.num_heads : mistral ? 8 : 32;
  config.num_kv_heads = fields.Integer("num_key_value_heads", kv_heads);
  config.head_dim = fields.Integer("head_dim", config.hidden_size / config.num_heads);
  const int64_t positions = llama ? 2048 : mistral ? 131072 : 32768;
  config.max_positions = fields.Field("max_position_embeddings").is_null()
                             ? positions
                             : fields.RequiredInteger("max_position_embeddings");
  config.rms_norm_eps = fields.Number("rms_norm_eps", 1e-6);
  config.tie_embeddings = fields.Flag("tie_word_embeddings", false);
  if (llama) {
    config.biases.qkv = config.biases.attention_out = fields.Flag("attention_bias", false);
    config.biases.mlp = fields.Flag("mlp_bias", false);
  } else if (mistral) {
    const int64_t window = fields.Has("sliding_window") ? fields.Integer("sliding_window", 0) : 4096;
    if (window < 0 || (window == 0 && !fields.Field("sliding_window").is_null())) {
      fields.Refuse("sliding_window", "must be positive, or null for none");
    }
    if (window > 0) config.layer_windows.assign(static_cast<size_t>(config.num_layers), window);
  } else {
    config.biases.qkv = true;
    config.layer_windows = ReadQwen2Windows(fields, config.num_layers);
  }
  if (config.num_kv_heads <= 0 || config.num_heads % config.num_kv_heads != 0) {
    fields.Refuse("num_key_value_heads", "must divide num_attention_heads");
  }
  if (config.head_dim <= 0 || config.head_dim % 2 != 0 || config.head_dim > INT32_MAX) {
    fields.Refuse("head_dim", "must be positive and even");
  }
  config.rope = ReadRope(fields, path, config, {});
  if (config.rope.partial_rotary_factor != 1.0) {
    fields.Refuse("partial_rotary_factor", "other than 1 is not supported");
  }
  return config;
}

}  // namespace

std::string EncodeConfigJson(const ModelConfig& config) {
  const ordered_json out = config.llama_like()                   ? EncodeLlamaLike(config)
                           : config.family == ModelFamily::kNeox ? EncodeNeox(config)
                                                                 : EncodeGpt2(config);
  return json(out).dump(2) + "\n";  // keys in alphabetical order, as transformers writes them
}

ModelConfig DecodeConfigJson(const std::string& text, const std::string& path) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  const ConfigFields fields(object, path);
  const json& type = fields.Field("model_type");
  const auto found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                  [&](const FamilyName& known) { return type == known.model_type; });
  if (found == std::end(kFamilies)) fields.Refuse("model_type", type.dump() + " is not supported");
  ModelConfig config = found->family == ModelFamily::kGpt2   ? DecodeGpt2(fields)
                       : found->family == ModelFamily::kNeox ? DecodeNeox(fields, path)
                                                             : DecodeLlamaLike(found->family, fields, path);
  fields.RefuseUnread();
  return config;
}

}  // namespace trainwright
