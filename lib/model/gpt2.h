/// GPT-2: learned positions, LayerNorm before each block, GELU, biases or none (nanoGPT).
/// \source Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; the names of
/// tensors are those of transformers' GPT2LMHeadModel
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/model/transformer.h"
#include "lib/nn/gelu.h"
#include "lib/nn/layer_norm.h"
#include "lib/nn/linear.h"

namespace trainwright {

/// Runs on the CPU. Positions beyond config().max_positions are refused by every call that computes.
class Gpt2 final : public Transformer {
 public:
  /// As MakeModel, with the storage chosen by the caller.
  Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
       const FineTuning& tuning = {});

 protected:
  at::Tensor Forward(const DeviceInput& input, bool keep, const Attend& attend) override;
  void Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) override;
  const Parameter& Head() const override { return parameters().all()[head_]; }
  int64_t positions_limit() const override { return config().max_positions; }

 private:
  /// Indices of a weight and its bias, if there is one.
  struct Pair {
    size_t weight = 0;
    std::optional<size_t> bias;
  };
  struct Projection {
    Linear linear;
    std::optional<size_t> bias;
  };
  struct Layer {
    Pair attention_norm, mlp_norm;
    Projection qkv, attention_out, up, down;
  };

  /// \throws Error{kUsage} on sizes that make no model; Error{kDevice} on a GPU
  static const ModelConfig& CheckedConfig(const ModelConfig& config, at::Device device);
  GeluKind gelu_kind() const;
  using Transformer::Gradient;
  using Transformer::Value;
  at::Tensor Value(std::optional<size_t> index) const { return index ? Value(*index) : at::Tensor(); }
  at::Tensor Gradient(std::optional<size_t> index) const { return index ? Gradient(*index) : at::Tensor(); }
  LayerNormWeights Norm(const Pair& pair) const { return {Value(pair.weight), Value(pair.bias)}; }

  size_t tokens_ = 0, positions_ = 0, head_ = 0;
  Pair final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace trainwright
