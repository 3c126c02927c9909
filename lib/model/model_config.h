/// The shape of a model: presets, and config.json of Hugging Face's Llama and GPT-2 families in and out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

/// kLlama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Touvron et al. 2023, arXiv:2302.13971;
/// Ainslie et al. 2023, arXiv:2305.13245 (grouped queries).
/// kGpt2: LayerNorm before each block, learned positions, GELU. Radford et al. 2019, "Language Models are
/// Unsupervised Multitask Learners". Trained without dropout.
enum class ModelFamily { kLlama, kGpt2 };

/// Between the MLP's matrices: gated SiLU (Llama), or GELU exact or by tanh (GPT-2; see lib/nn/gelu.h).
enum class Activation { kSwiglu, kGelu, kGeluTanh };

struct ModelConfig {
  std::string preset;  ///< name of the preset it came from, or empty
  ModelFamily family = ModelFamily::kLlama;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;        ///< D
  int64_t intermediate_size = 0;  ///< F
  int64_t num_layers = 0;
  int64_t num_heads = 0;      ///< H
  int64_t num_kv_heads = 0;   ///< G, divides H; GPT-2: H
  int64_t head_dim = 0;       ///< K; Llama: H*K may differ from D
  int64_t max_positions = 0;  ///< longest context it is trained for; GPT-2 has no positions beyond
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;  ///< Llama alone
  Activation activation = Activation::kSwiglu;
  bool bias = false;  ///< GPT-2: matrices and norms have biases
  bool tie_embeddings = false;
  int64_t bos_id = -1, eos_id = -1, pad_id = -1;  ///< -1: none
  bool operator==(const ModelConfig&) const = default;
};

/// Names of the presets, each family's smallest first: llama-1m ... llama-1b (named by parameters without
/// embeddings), gpt2-124m ... gpt2-1558m (published shapes, named by all parameters at 50257 tokens),
/// nanogpt-10m (nanoGPT's character-level model: 6 layers, 384 wide, exact GELU, no biases).
std::vector<std::string> PresetNames();
/// \throws Error{kUsage} listing the presets
ModelConfig PresetConfig(const std::string& name, int64_t vocab_size);
/// Parameters of a config, embeddings included (tied ones once).
int64_t CountParameters(const ModelConfig& config);

/// config.json as transformers reads it (LlamaForCausalLM or GPT2LMHeadModel). A GPT-2 without biases says
/// so by nanoGPT's field `bias`; transformers ignores it and finds zero biases in the weights.
std::string EncodeConfigJson(const ModelConfig& config);
/// Reads transformers' config.json, the 4.x and 5.x spellings (rope_theta / rope_parameters, torch_dtype /
/// dtype). Fields that would change the maths in a way this build does not compute are refused by name, not
/// ignored; of GPT-2, only the dropout probabilities are, because evaluation does not use them and published
/// files have 0.1: training here is without dropout. \throws Error{kBadInput} naming `path` and the field
ModelConfig DecodeConfigJson(const std::string& text, const std::string& path);

}  // namespace trainwright
