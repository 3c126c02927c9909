/// What GPT-2 and GPT-NeoX share: LayerNorm before each block, GELU between the MLP's matrices, biases or
/// none, learned or rotary positions, and an MLP that reads either the output of attention or, beside it, the
/// same input (Wang and Komatsuzaki 2021, GPT-J). A family registers its parameters under its names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/transformer.h"
#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/norm/layer_norm.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

/// Learned positions end at config().max_positions: every call that computes refuses others.
class GeluTransformer : public Transformer {
 public:
  const RopeTable* rope() const final { return parts_.rope ? &*parts_.rope : nullptr; }
  int64_t positions_limit() const final;

 protected:
  /// Indices of a norm's or a projection's weight, and of its bias if there is one.
  struct Pair {
    size_t weight = 0;
    std::optional<size_t> bias;
  };
  struct Layer {
    Pair attention_norm, mlp_norm;
    Linear qkv, attention_out, up, down;
  };
  struct Parts {
    size_t tokens = 0;                ///< table of embeddings
    std::optional<size_t> positions;  ///< learned ones
    std::vector<Layer> layers;
    Pair final_norm;
    std::optional<RopeTable> rope;
  };

  /// \throws Error{kUsage} on sizes that make no model
  GeluTransformer(const ModelConfig& config, const Numerics& numerics, at::Device device,
                  const FineTuning& tuning);

  /// Of allocated parameters.
  Linear LinearOf(const Pair& projection, bool fp8 = false);

  Parts parts_;  ///< filled by the family's constructor

 private:
  class Pass;

  static const ModelConfig& CheckedConfig(const ModelConfig& config);
  std::unique_ptr<LayerPass> NewPass(const DeviceInput& input, const Attend& attend) final;
  GeluKind gelu_kind() const;
  using Transformer::Gradient;
  using Transformer::Value;
  at::Tensor Value(std::optional<size_t> index) const { return index ? Value(*index) : at::Tensor(); }
  at::Tensor Gradient(std::optional<size_t> index) { return index ? Gradient(*index) : at::Tensor(); }
  LayerNormWeights WeightsOf(const Pair& norm) const { return {Value(norm.weight), Value(norm.bias)}; }
};

}  // namespace trainwright
