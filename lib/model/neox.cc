#include "lib/model/neox.h"

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/initialize.h"

namespace trainwright {

Neox::Neox(const ModelConfig& config, const Numerics& numerics, at::Device device,
           std::optional<uint64_t> seed, const FineTuning& tuning)
    : GeluTransformer(config, numerics, device, tuning) {
  const Biases& biases = config.biases;
  TRAINWRIGHT_CHECK(biases.norm && biases.mlp && biases.qkv == biases.attention_out);
  FlatParameters& parameters = this->parameters();
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const auto norm = [&](const std::string& name) {
    const size_t weight = parameters.Add(name + ".weight", {width}, false);
    return Pair{weight, parameters.Add(name + ".bias", {width}, false)};
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns, bool biased) {
    Pair pair{parameters.Add(name + ".weight", {rows, columns}, true), std::nullopt};
    if (biased) pair.bias = parameters.Add(name + ".bias", {rows}, false);
    return pair;
  };
  struct Indices {
    Pair attention_norm, qkv, attention_out, mlp_norm, up, down;
  };
  std::vector<Indices> indices;
  parts_.tokens = parameters.Add("gpt_neox.embed_in.weight", {config.vocab_size, width}, true);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.StartSegment();
    const std::string prefix = "gpt_neox.layers." + std::to_string(layer) + ".";
    Indices i;
    i.attention_norm = norm(prefix + "input_layernorm");
    i.qkv = matrix(prefix + "attention.query_key_value", 3 * width, width, biases.qkv);
    for (const std::optional<size_t> index : {std::optional(i.qkv.weight), i.qkv.bias}) {
      if (!index) continue;
      parameters[*index].file_order = FileOrder::kHeadsOutside;
      parameters[*index].num_heads = config.num_heads;
    }
    i.attention_out = matrix(prefix + "attention.dense", width, width, biases.attention_out);
    i.mlp_norm = norm(prefix + "post_attention_layernorm");
    i.up = matrix(prefix + "mlp.dense_h_to_4h", wide, width, true);
    i.down = matrix(prefix + "mlp.dense_4h_to_h", width, wide, true);
    indices.push_back(i);
  }
  parameters.StartSegment();
  parts_.final_norm = norm("gpt_neox.final_layer_norm");
  AddHead("embed_out.weight", parts_.tokens);
  parts_.rope.emplace(config.rope, config.head_dim, device);
  AllocateParameters();
  for (const Indices& i : indices) {
    parts_.layers.push_back({i.attention_norm, i.mlp_norm, LinearOf(i.qkv), LinearOf(i.attention_out),
                             LinearOf(i.up, numerics.fp8.mlp), LinearOf(i.down, numerics.fp8.mlp)});
  }
  if (seed) {
    const auto into_residual = [](const std::string& name) {
      return name.ends_with("attention.dense.weight") || name.ends_with("dense_4h_to_h.weight");
    };
    InitializeWeights(*seed, config, into_residual, &parameters);
  }
}

}  // namespace trainwright
