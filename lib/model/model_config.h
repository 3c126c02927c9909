/// The shape of a model: presets, and config.json of Hugging Face's Llama family in and out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

/// A Llama-family decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Touvron et al. 2023,
/// arXiv:2302.13971; Ainslie et al. 2023, arXiv:2305.13245 (grouped queries).
struct ModelConfig {
  std::string preset;  ///< name of the preset it came from, or empty
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;        ///< D
  int64_t intermediate_size = 0;  ///< F
  int64_t num_layers = 0;
  int64_t num_heads = 0;      ///< H
  int64_t num_kv_heads = 0;   ///< G, divides H
  int64_t head_dim = 0;       ///< K; H*K may differ from D
  int64_t max_positions = 0;  ///< longest context it is trained for
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  bool tie_embeddings = false;
  int64_t bos_id = -1, eos_id = -1, pad_id = -1;  ///< -1: none
  bool operator==(const ModelConfig&) const = default;
};

/// Names of the presets, smallest first: llama-1m ... llama-1b (sizes without embeddings).
std::vector<std::string> PresetNames();
/// \throws Error{kUsage} listing the presets
ModelConfig PresetConfig(const std::string& name, int64_t vocab_size);
/// Parameters of a config, embeddings included (tied ones once).
int64_t CountParameters(const ModelConfig& config);

/// config.json as transformers reads it (LlamaForCausalLM).
std::string EncodeConfigJson(const ModelConfig& config);
/// Reads transformers' config.json, the 4.x and 5.x spellings (rope_theta / rope_parameters, torch_dtype /
/// dtype). Fields that would change the maths in a way this build does not compute are refused by name, not
/// ignored. \throws Error{kBadInput} naming `path` and the field
ModelConfig DecodeConfigJson(const std::string& text, const std::string& path);

}  // namespace trainwright
