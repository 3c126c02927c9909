/// What the decoder-only families share: the passes of LanguageModel around a family's own layers, the
/// activations that a layer keeps for its backward pass, and decoding with a cache of keys and values.
///
/// A family derives from it, registers its parameters, and runs its layers forward and backward. Its layers
/// call the attention that they are given, so that one forward pass serves packed batches and decoding.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/model/device_input.h"
#include "lib/model/language_model.h"
#include "lib/nn/attention/attention.h"
#include "lib/nn/buffer.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

class Transformer : public LanguageModel {
 public:
  const ModelConfig& config() const final { return config_; }
  FlatParameters& parameters() final { return parameters_; }
  const FlatParameters& parameters() const final { return parameters_; }
  LossSum Loss(const ModelInput& input) final;
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) final;
  at::Tensor Logits(const ModelInput& input) final;
  std::unique_ptr<Decoder> NewDecoder(int64_t max_tokens, int64_t sequences) final;
  ModelMemory memory() const final;
  void ReleaseActivations() final;

 protected:
  /// What a family's layers keep, beside what all do.
  struct Sizes {
    int64_t norm_statistics = 1;     ///< values a row that a norm keeps
    int64_t mlp_inner = 0;           ///< columns of `mlp_nf` in LayerViews
    bool parallel_residual = false;  ///< attention and MLP read the same input
  };
  /// What the backward pass of a layer needs, cut to the length of the micro-batch; normalised inputs and
  /// the MLP's activation are computed again from it. Statistics and the stream (input, middle) are fp32.
  /// With a parallel residual there is no middle.
  struct LayerViews {
    at::Tensor input_nd, middle_nd, input_statistics_sn, middle_statistics_sn, qkv, attention, lse_hn, mlp_nf;
  };
  /// Writes attention and lse_hn of a layer from its qkv.
  using Attend = std::function<void(size_t layer, LayerViews& views)>;
  /// Temporaries of a forward pass, storage type: [N, D], [N, D], [N, F], and with a parallel residual [N,
  /// D].
  struct ForwardScratch {
    at::Tensor normed_nd, update_nd, activation_nf, parallel_update_nd;
  };
  /// Temporaries of a backward pass. `d_stream_nd` is fp32 and zero at first; `d_short_nd` is what products
  /// read of it: itself under fp32, else rounded by RefreshShort.
  struct BackwardScratch {
    at::Tensor normed_nd, d_normed_nd, activation_nf, d_activation_nf, d_attention, d_qkv, d_stream_nd,
        d_short_nd;
  };

  /// \param config of sizes that are positive
  /// \throws Error{kUsage} on an attention backend that cannot run
  Transformer(const ModelConfig& config, const Numerics& numerics, at::Device device, const Sizes& sizes,
              const FineTuning& tuning);
  /// Allocates what the family registered: with adapters, and frozen beside them, as the tuning says.
  /// \throws Error{kUsage} on adapters that the family cannot have
  void AllocateParameters();
  /// Whether the family's own parameters are trained; else the backward pass may end at the lowest adapter.
  bool trains_base() const { return parameters_.adapters() == nullptr; }

  [[noreturn]] static void RefuseConfig(const std::string& field, const std::string& problem);
  /// \throws Error{kUsage} naming the first field that is not positive
  static void RequirePositive(std::initializer_list<std::pair<const char*, int64_t>> fields);

  /// Runs all layers; the result is the normalised output of the last, storage type [N, D].
  /// \param keep whether each layer's activations stay for Backward
  virtual at::Tensor Forward(const DeviceInput& input, bool keep, const Attend& attend) = 0;
  /// Adds the gradients of all parameters below the head.
  /// \param d_hidden_nd gradient of Forward's result
  virtual void Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) = 0;
  /// The index of the matrix of the logits.
  virtual size_t head() const = 0;
  const at::Tensor& HeadMatrix() const { return parameters_.all()[head()].compute; }
  /// One past the largest position that the model can compute.
  virtual int64_t positions_limit() const { return std::numeric_limits<int64_t>::max(); }

  const Numerics& numerics() const { return numerics_; }
  at::Device device() const { return device_; }
  /// The rotary positions of a family that has them, or null.
  virtual const RopeTable* rope() const { return nullptr; }
  /// Registers the matrix of the logits, or its name as another one of the tied embeddings.
  size_t AddHead(const std::string& name, size_t embeddings);
  AttentionShape ShapeOf(int64_t num_tokens, size_t layer) const;
  const at::Tensor& Value(size_t index) const { return parameters_.all()[index].value; }
  at::Tensor Gradient(size_t index) { return parameters_.Gradient(index); }
  /// With activation checkpointing layers share the buffers of what does not stay, and with offload all.
  LayerViews ViewsOf(size_t layer, int64_t num_tokens);
  /// With offload: puts away what stays of a layer, once its forward pass is over and before the next one's.
  /// The last layer's stays.
  void PutAway(size_t layer, const LayerViews& views);
  /// Brings it back, from the layer before the last to the first.
  /// \returns the layer's views
  LayerViews BringBack(size_t layer, int64_t num_tokens);
  /// Whether the backward pass finds in the views of a layer what the forward pass wrote: qkv, attention,
  /// lse_hn and middle_nd; or mlp_nf. Inputs and statistics always stay, and of the last layer all.
  bool KeepsAttention(size_t layer) const;
  bool KeepsMlp(size_t layer) const;
  /// The attention of training: within the spans of a packed micro-batch.
  /// \param input outlives it
  Attend PackedAttend(const DeviceInput& input) const;
  /// Where the last norm keeps its input [N, D] and statistics [S, N], both fp32.
  at::Tensor OutputOf(int64_t num_tokens) { return TemporaryFp32(output_, num_tokens, config_.hidden_size); }
  at::Tensor OutputStatisticsOf(int64_t num_tokens) {
    return TemporaryFp32(output_statistics_, sizes_.norm_statistics, num_tokens);
  }
  ForwardScratch NewForwardScratch(int64_t num_tokens);
  BackwardScratch NewBackwardScratch(int64_t num_tokens);
  void RefreshShort(BackwardScratch& scratch) const;

 private:
  friend class CachedDecoder;

  struct Saved {
    Buffer input, middle, input_statistics, middle_statistics, qkv, attention, lse, mlp;
  };

  /// What of a layer's views is there until the backward pass.
  std::vector<at::Tensor> WhatStays(const LayerViews& views) const;
  DeviceInput Checked(const ModelInput& input) const;
  at::Tensor ForwardPacked(const DeviceInput& input, bool keep);
  at::Tensor LogitsOf(const at::Tensor& hidden_nd) const;
  at::Tensor Temporary(Buffer& buffer, int64_t rows, int64_t columns);
  at::Tensor TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns);

  ModelConfig config_;
  Numerics numerics_;
  at::Device device_;
  Sizes sizes_;
  FineTuning tuning_;
  FlatParameters parameters_;
  LinearCrossEntropy loss_;
  std::vector<Saved> saved_;
  Buffer output_, output_statistics_, normed_, update_, parallel_update_, activation_, d_stream_, d_short_,
      d_normed_, d_activation_, d_attention_, d_qkv_;
};

}  // namespace trainwright
