/// The shape of a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/spec/family_fields.h"
#include "lib/spec/rope_parameters.h"

namespace trainwright {

class FamilyDescription;

/// Between the MLP's matrices: gated SiLU (Llama), or GELU exact or by tanh (GPT-2, NeoX; see
/// lib/nn/activation/gelu.h).
enum class Activation { kSwiglu, kGelu, kGeluTanh };

/// transformers' deviation of initial weights where a config.json has none.
inline constexpr double kUsualInitializerRange = 0.02;

/// Which layers of a model have biases.
struct Biases {
  bool qkv = false, attention_out = false, mlp = false, norm = false;
  static constexpr Biases All() { return {true, true, true, true}; }
  bool operator==(const Biases&) const = default;
};

/// The fields are those that several families share; a family leaves at their defaults those that it has not.
struct ModelConfig {
  std::string preset;                         ///< name of the preset it came from, or empty
  const FamilyDescription* family = nullptr;  ///< outlives the config; lib/spec/family.h
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;        ///< D
  int64_t intermediate_size = 0;  ///< F
  int64_t num_layers = 0;
  int64_t num_heads = 0;       ///< H; 0: no attention
  int64_t num_kv_heads = 0;    ///< G, divides H; GPT-2, NeoX: H
  int64_t head_dim = 0;        ///< K; Llama: H*K may differ from D
  int64_t max_positions = 0;   ///< longest context it is trained for; GPT-2 has no positions beyond
  double rms_norm_eps = 1e-5;  ///< of LayerNorm too
  RopeParameters rope;         ///< all but GPT-2
  /// Tokens that a token of each layer attends to, itself among them; 0: all before it. Empty: 0 everywhere.
  /// In both directions this many to either side of itself, as in transformers 5.
  std::vector<int64_t> layer_windows;
  Activation activation = Activation::kSwiglu;
  Biases biases;                   ///< GPT-2: all or none
  bool parallel_residual = false;  ///< NeoX: attention and MLP read the same input
  bool tie_embeddings = false;
  int64_t bos_id = -1, eos_id = -1, pad_id = -1;  ///< -1: none
  std::vector<int64_t> more_eos_ids;              ///< where several end a text: those after eos_id
  /// false: config.json asks for attention in both directions. What predicts tokens refuses such a model, and
  /// vectors are made by the attention that is asked for: no layer reads this.
  bool is_causal = true;
  double initializer_range = kUsualInitializerRange;  ///< deviation of matrices that are initialised
  /// Shares of activations that transformers drops while it trains, by their names in config.json: those
  /// above 0. Nothing is dropped here; a config.json that is written has them again.
  std::map<std::string, double> dropouts;
  FamilyFields own;  ///< what the family alone has

  bool operator==(const ModelConfig&) const = default;
};

/// ModelConfig::layer_windows of a layer; 0: none.
inline int64_t WindowOf(const ModelConfig& config, int64_t layer) {
  return config.layer_windows.empty() ? 0 : config.layer_windows[static_cast<size_t>(layer)];
}

/// The config without what no forward pass depends on: initializer_range and dropouts are the usual ones.
ModelConfig ComputedPart(ModelConfig config);

/// Parameters of a config, embeddings included (tied ones once).
int64_t CountParameters(const ModelConfig& config);

}  // namespace trainwright
