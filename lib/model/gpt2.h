/// GPT-2: learned positions, LayerNorm before each block, GELU, biases or none (nanoGPT).
/// \source Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; the names of
/// tensors are those of transformers' GPT2LMHeadModel
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/language_model.h"
#include "lib/nn/attention.h"
#include "lib/nn/buffer.h"
#include "lib/nn/gelu.h"
#include "lib/nn/layer_norm.h"
#include "lib/nn/linear.h"

namespace trainwright {

/// Runs on the CPU. Positions beyond config().max_positions are refused by every call that computes.
class Gpt2 final : public LanguageModel {
 public:
  /// As MakeModel, with the storage chosen by the caller.
  Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed);
  const ModelConfig& config() const override { return config_; }
  FlatParameters& parameters() override { return parameters_; }
  const FlatParameters& parameters() const override { return parameters_; }
  LossSum Loss(const ModelInput& input) override;
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override;
  at::Tensor Logits(const ModelInput& input) override;
  std::unique_ptr<Decoder> NewDecoder(int64_t max_tokens) override;
  ModelMemory memory() const override;

 private:
  friend class Gpt2Decoder;

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
  /// What the backward pass of a layer needs; normalised inputs and the activation are computed again from
  /// it.
  struct Saved {
    Buffer input, middle, input_statistics, middle_statistics, qkv, attention, lse, up;
  };
  /// The tensors of a micro-batch, cut to its length. `up` lacks its bias.
  struct Views {
    at::Tensor input_nd, middle_nd;
    LayerNormStatistics input_statistics, middle_statistics;
    at::Tensor qkv, attention, lse_hn, up_nf;
  };

  void Check(const ModelInput& input) const;
  Views ViewsOf(size_t slot, int64_t num_tokens);
  LayerNormStatistics StatisticsOf(Buffer& buffer, int64_t num_tokens);
  AttentionShape ShapeOf(int64_t num_tokens) const;
  GeluKind gelu_kind() const;
  const at::Tensor& Value(size_t index) const { return parameters_.all()[index].value; }
  at::Tensor Value(std::optional<size_t> index) const { return index ? Value(*index) : at::Tensor(); }
  at::Tensor Gradient(std::optional<size_t> index) const {
    return index ? parameters_.all()[*index].gradient : at::Tensor();
  }
  LayerNormWeights Norm(const Pair& pair) const { return {Value(pair.weight), Value(pair.bias)}; }
  const Parameter& Head() const { return parameters_.all()[head_]; }
  void EmbedInto(const at::Tensor& tokens_n, const at::Tensor& positions_n, at::Tensor& stream_nd) const;
  /// The half of a layer after its attention. \param update temporary, then what is to be added to
  /// saved.middle_nd, without its bias
  void RunMlp(const Layer& layer, Views& saved, at::Tensor& normed, at::Tensor& activation,
              at::Tensor& update);
  /// Runs all layers; the result is the normalised output of the last, storage type [N, D].
  /// \param keep whether each layer's activations stay for Backward
  at::Tensor Forward(const ModelInput& input, bool keep);
  /// \param d_hidden_nd gradient of Forward's result
  void Backward(const ModelInput& input, const at::Tensor& d_hidden_nd);
  at::Tensor Temporary(Buffer& buffer, int64_t rows, int64_t columns);
  at::Tensor TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns);

  ModelConfig config_;
  Numerics numerics_;
  at::Device device_;
  FlatParameters parameters_;
  size_t tokens_ = 0, positions_ = 0, head_ = 0;
  Pair final_norm_;
  std::vector<Layer> layers_;
  LinearCrossEntropy loss_;
  std::vector<Saved> saved_;
  Buffer output_, output_statistics_, normed_, update_, activation_, d_stream_, d_short_, d_normed_,
      d_activation_, d_attention_, d_qkv_;
};

}  // namespace trainwright
