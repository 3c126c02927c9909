/// The Llama family: RMSNorm, rotary positions, grouped-query attention, SwiGLU. \source arXiv:2302.13971
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/device_input.h"
#include "lib/model/language_model.h"
#include "lib/nn/buffer.h"
#include "lib/nn/linear.h"
#include "lib/nn/rope.h"

namespace trainwright {

class Llama final : public LanguageModel {
 public:
  /// As MakeModel, with the storage chosen by the caller.
  Llama(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed);
  const ModelConfig& config() const override { return config_; }
  FlatParameters& parameters() override { return parameters_; }
  const FlatParameters& parameters() const override { return parameters_; }
  LossSum Loss(const ModelInput& input) override;
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override;
  at::Tensor Logits(const ModelInput& input) override;
  std::unique_ptr<Decoder> NewDecoder(int64_t max_tokens) override;
  ModelMemory memory() const override;

 private:
  friend class LlamaDecoder;

  struct Layer {
    size_t attention_norm, mlp_norm;
    Linear qkv, attention_out, gate_up, down;
  };
  /// What the backward pass of a layer needs; normalised inputs and the activation are computed again from
  /// it.
  struct Saved {
    Buffer input, middle, input_rstd, middle_rstd, qkv, attention, lse, gate_up;
  };
  /// The tensors of a micro-batch, cut to its length.
  struct Views {
    at::Tensor input_nd, middle_nd, input_rstd_n, middle_rstd_n, qkv, attention, lse_hn, gate_up;
  };

  Views ViewsOf(size_t slot, int64_t num_tokens);
  AttentionShape ShapeOf(int64_t num_tokens) const;
  const at::Tensor& Weight(size_t index) const { return parameters_.all()[index].value; }
  const Parameter& Head() const { return parameters_.all()[head_]; }
  /// Runs all layers; the result is the normalised output of the last, storage type [N, D].
  /// \param keep whether each layer's activations stay for Backward
  at::Tensor Forward(const DeviceInput& input, bool keep);
  /// \param d_hidden_nd gradient of Forward's result
  void Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd);
  at::Tensor Temporary(Buffer& buffer, int64_t rows, int64_t columns);
  at::Tensor TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns);

  ModelConfig config_;
  Numerics numerics_;
  at::Device device_;
  FlatParameters parameters_;
  size_t embedding_ = 0, final_norm_ = 0, head_ = 0;
  std::vector<Layer> layers_;
  RopeTable rope_;
  LinearCrossEntropy loss_;
  std::vector<Saved> saved_;
  Buffer output_, output_rstd_, normed_, update_, activation_, d_stream_, d_short_, d_normed_, d_activation_,
      d_attention_, d_qkv_;
};

}  // namespace trainwright
