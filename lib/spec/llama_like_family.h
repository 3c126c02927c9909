/// What Llama, Mistral and Qwen2 share: RMSNorm, rotary positions, grouped queries, a gated MLP, and their
/// spelling in config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/spec/transformer_family.h"

namespace trainwright {

class LlamaLikeFamily : public TransformerFamily {
 public:
  void Decode(const ConfigFields& fields, ModelConfig* config) const final;
  nlohmann::ordered_json Encode(const ModelConfig& config) const final;
  bool runs_on_gpu() const final { return true; }
  LoraBlocks lora_blocks() const final { return {.attention = {"self_attn"}, .mlp = {"mlp"}}; }
  OuterModules outer_modules() const final {
    return {.tables = {"model.embed_tokens"}, .head = "lm_head", .norms = {"model.norm"}};
  }

 protected:
  /// A shape, named by parameters without embeddings (llama-...), or a published one with the vocabulary of
  /// its own, named by all.
  struct Shape {
    const char* name;
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
    bool tied;
    double rope_theta = 10000.0;
  };
  ModelConfig ConfigOf(const Shape& shape) const;

  /// transformers' values of fields that are absent.
  struct Absent {
    int64_t kv_heads;  ///< 0: as many as heads
    int64_t positions;
  };
  virtual Absent absent() const = 0;
  virtual const char* architecture() const = 0;
  /// Fields that one of the families alone has.
  virtual void DecodeOwn(const ConfigFields& fields, ModelConfig* config) const = 0;
  virtual void EncodeOwn(const ModelConfig& config, nlohmann::ordered_json* out) const = 0;

  std::vector<Matrix> MatricesOfALayer(const ModelConfig& config) const final;
  const char* layers_path() const final { return "model.layers."; }
};

/// sliding_window of the layers that have one, or null.
nlohmann::ordered_json WindowOrNull(const ModelConfig& config);

}  // namespace trainwright
