/// The shape of a model, and the presets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/spec/rope_parameters.h"

namespace trainwright {

/// kLlama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Touvron et al. 2023, arXiv:2302.13971;
/// Ainslie et al. 2023, arXiv:2305.13245 (grouped queries).
/// kMistral: the same with a sliding window. Jiang et al. 2023, arXiv:2310.06825.
/// kQwen2: the same with biases of the query, key and value projections. Yang et al. 2024, arXiv:2407.10671.
/// kGpt2: LayerNorm before each block, learned positions, GELU. Radford et al. 2019, "Language Models are
/// Unsupervised Multitask Learners". Trained without dropout.
/// kNeox: LayerNorm, rotary positions of a part of each head, GELU, attention and MLP beside each other.
/// Black et al. 2022, arXiv:2204.06745. Trained without dropout.
enum class ModelFamily { kLlama, kMistral, kQwen2, kGpt2, kNeox };

/// Between the MLP's matrices: gated SiLU (Llama), or GELU exact or by tanh (GPT-2, NeoX; see
/// lib/nn/activation/gelu.h).
enum class Activation { kSwiglu, kGelu, kGeluTanh };

/// Which layers of a model have biases.
struct Biases {
  bool qkv = false, attention_out = false, mlp = false, norm = false;
  static constexpr Biases All() { return {true, true, true, true}; }
  bool operator==(const Biases&) const = default;
};

struct ModelConfig {
  std::string preset;  ///< name of the preset it came from, or empty
  ModelFamily family = ModelFamily::kLlama;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;        ///< D
  int64_t intermediate_size = 0;  ///< F
  int64_t num_layers = 0;
  int64_t num_heads = 0;       ///< H
  int64_t num_kv_heads = 0;    ///< G, divides H; GPT-2, NeoX: H
  int64_t head_dim = 0;        ///< K; Llama: H*K may differ from D
  int64_t max_positions = 0;   ///< longest context it is trained for; GPT-2 has no positions beyond
  double rms_norm_eps = 1e-5;  ///< of LayerNorm too
  RopeParameters rope;         ///< all but GPT-2
  /// Tokens that a token of each layer attends to, itself among them; 0: all before it. Empty: 0 everywhere.
  std::vector<int64_t> layer_windows;
  Activation activation = Activation::kSwiglu;
  Biases biases;                   ///< GPT-2: all or none
  bool parallel_residual = false;  ///< NeoX: attention and MLP read the same input
  bool tie_embeddings = false;
  int64_t bos_id = -1, eos_id = -1, pad_id = -1;  ///< -1: none

  /// RMSNorm and SwiGLU: one decoder for the families kLlama, kMistral and kQwen2.
  bool llama_like() const { return activation == Activation::kSwiglu; }
  int64_t window(int64_t layer) const {
    return layer_windows.empty() ? 0 : layer_windows[static_cast<size_t>(layer)];
  }
  bool operator==(const ModelConfig&) const = default;
};

/// Names of the presets, each family's smallest first: llama-1m ... llama-1b (named by parameters without
/// embeddings); published shapes, named by all parameters with their own vocabularies: smollm2-135m and
/// -360m, tinyllama-1.1b, mistral-7b (v0.1), qwen2-0.5b, gpt2-124m ... gpt2-1558m; nanogpt-10m (nanoGPT's
/// character-level model: 6 layers, 384 wide, exact GELU, no biases); neox-tiny and neox-1.4b.
std::vector<std::string> PresetNames();
/// \throws Error{kUsage} listing the presets
ModelConfig PresetConfig(const std::string& name, int64_t vocab_size);
/// Parameters of a config, embeddings included (tied ones once).
int64_t CountParameters(const ModelConfig& config);

}  // namespace trainwright
