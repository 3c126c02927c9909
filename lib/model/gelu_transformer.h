/// What GPT-2 and GPT-NeoX share: LayerNorm before each block, GELU between the MLP's matrices, biases or
/// none, learned or rotary positions, and an MLP that reads either the output of attention or, beside it, the
/// same input (Wang and Komatsuzaki 2021, GPT-J). A family registers its parameters under its names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/transformer.h"
#include "lib/nn/activation/gelu.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/norm/layer_norm.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

/// Runs on the CPU. Learned positions end at config().max_positions: every call that computes refuses others.
class GeluTransformer : public Transformer {
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
    size_t head = 0;
    std::optional<RopeTable> rope;
  };

  /// \throws Error{kUsage} on sizes that make no model
  GeluTransformer(const ModelConfig& config, const Numerics& numerics, at::Device device,
                  const FineTuning& tuning);

  at::Tensor Forward(const DeviceInput& input, bool keep, const Attend& attend) final;
  void Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) final;
  size_t head() const final { return parts_.head; }
  const RopeTable* rope() const final { return parts_.rope ? &*parts_.rope : nullptr; }
  int64_t positions_limit() const final;

  /// Of allocated parameters.
  Linear LinearOf(const Pair& projection);

  Parts parts_;  ///< filled by the family's constructor

 private:
  static const ModelConfig& CheckedConfig(const ModelConfig& config);
  GeluKind gelu_kind() const;
  using Transformer::Gradient;
  using Transformer::Value;
  at::Tensor Value(std::optional<size_t> index) const { return index ? Value(*index) : at::Tensor(); }
  at::Tensor Gradient(std::optional<size_t> index) { return index ? Gradient(*index) : at::Tensor(); }
  LayerNormWeights WeightsOf(const Pair& norm) const { return {Value(norm.weight), Value(norm.bias)}; }
  RopeRows RopeRowsOf(const DeviceInput& input);
  /// A layer's qkv, attention and lse_hn.
  /// \param normed_nd the normalised input
  void ForwardAttention(size_t index, const RopeRows& rope, const Attend& attend, const at::Tensor& normed_nd,
                        LayerViews& views);
  /// Computes again what the views of a layer have lost. Uses normed_nd and d_normed_nd of the scratch.
  void ForwardAgain(size_t index, const DeviceInput& input, const RopeRows& rope, LayerViews& views,
                    BackwardScratch& scratch);
};

}  // namespace trainwright
