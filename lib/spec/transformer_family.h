/// What the families of decoders with attention and an MLP share: the exact count of parameters, and of
/// operations:
///   3 * (2 * tokens * layers * (2*D*H*K + 2*D*G*K + m*D*F) + 2 * labels * D*V + 4 * pairs * layers * H*K)
/// with m = 3 matrices in a gated MLP and 2 in a plain one; letters as in ModelConfig.
///
/// With adapters the forward pass, what lib/spec/adapter_flops.h counts, and of the backward pass the head's
/// 2 D V a label once, twice where it is trained whole, and attention's twice the forward pass in the layers
/// where an adapter lies at the queries, keys and values or in a layer below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/spec/family.h"

namespace trainwright {

/// The note of presets of published shapes.
inline constexpr char kPublishedShape[] = "published shapes, without dropout";

class TransformerFamily : public FamilyDescription {
 public:
  int64_t CountParameters(const ModelConfig& config) const final;
  StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& tuning) const final;
  int64_t CountAttentionPairs(const ModelConfig& config, const std::vector<int32_t>& starts) const final;
  std::vector<LayerMatrix> LayerMatrices(const ModelConfig& config) const final;
  bool has_bf16_stream() const final { return true; }
  bool has_fp8_mlp() const final { return true; }

 protected:
  /// Where a matrix lies in its layer, in the order of the forward pass. In a parallel layer kUp does not lie
  /// above attention.
  enum Stage { kQkv = 0, kAttentionOut, kUp, kDown, kStages };
  struct Matrix {
    const char* name;  ///< in its layer: "self_attn.q_proj"
    Stage stage;
    int64_t outputs, inputs;
  };
  /// In the order of the model's parameters.
  virtual std::vector<Matrix> MatricesOfALayer(const ModelConfig& config) const = 0;
  /// What a layer's number follows: "model.layers."
  virtual const char* layers_path() const = 0;
  /// A table of positions has parameters.
  virtual bool learns_positions() const { return false; }

 private:
  StepFlops CountAdapterFlops(const ModelConfig& config, const LoraOptions& lora) const;
};

}  // namespace trainwright
