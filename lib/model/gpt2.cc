#include "lib/model/gpt2.h"

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/initialize.h"

namespace trainwright {

Gpt2::Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device,
           std::optional<uint64_t> seed, const FineTuning& tuning)
    : GeluTransformer(config, numerics, device, tuning) {
  TRAINWRIGHT_CHECK(config.biases == Biases::All() || config.biases == Biases());
  FlatParameters& parameters = this->parameters();
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const auto bias = [&](const std::string& name, int64_t size) -> std::optional<size_t> {
    if (config.biases.norm) return parameters.Add(name + ".bias", {size}, false);
    parameters.AddZeros(name + ".bias", {size});
    return std::nullopt;
  };
  const auto norm = [&](const std::string& name) {
    const size_t weight = parameters.Add(name + ".weight", {width}, false);
    return Pair{weight, bias(name, width)};
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    const size_t weight = parameters.Add(name + ".weight", {rows, columns}, true);
    parameters[weight].file_order = FileOrder::kTransposed;
    return Pair{weight, bias(name, rows)};
  };
  struct Indices {
    Pair attention_norm, qkv, attention_out, mlp_norm, up, down;
  };
  std::vector<Indices> indices;
  parts_.tokens = parameters.Add("transformer.wte.weight", {config.vocab_size, width}, true);
  parts_.positions = parameters.Add("transformer.wpe.weight", {config.max_positions, width}, true);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.StartSegment();
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    Indices i;
    i.attention_norm = norm(prefix + "ln_1");
    i.qkv = matrix(prefix + "attn.c_attn", 3 * width, width);
    i.attention_out = matrix(prefix + "attn.c_proj", width, width);
    i.mlp_norm = norm(prefix + "ln_2");
    i.up = matrix(prefix + "mlp.c_fc", wide, width);
    i.down = matrix(prefix + "mlp.c_proj", width, wide);
    indices.push_back(i);
  }
  parameters.StartSegment();
  parts_.final_norm = norm("transformer.ln_f");
  AddHead("lm_head.weight", parts_.tokens);
  AllocateParameters();
  for (const Indices& i : indices) {
    parts_.layers.push_back({i.attention_norm, i.mlp_norm, LinearOf(i.qkv), LinearOf(i.attention_out),
                             LinearOf(i.up, numerics.fp8.mlp), LinearOf(i.down, numerics.fp8.mlp)});
  }
  if (seed) {
    InitializeWeights(
        *seed, config, [](const std::string& name) { return name.ends_with(".c_proj.weight"); }, &parameters);
  }
}

}  // namespace trainwright
