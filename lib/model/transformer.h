/// What the decoder-only families of attention and MLP share: the activations that a layer keeps for its
/// backward pass, the temporaries of a pass, and decoding with a cache of keys and values.
///
/// A family derives from it, registers its parameters, and supplies its LayerPass. The pass calls the
/// attention that it is given, so that one forward pass serves packed batches and decoding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/model/layer_stack.h"
#include "lib/nn/attention/attention.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

class Transformer : public LayerStack {
 public:
  /// What the backward pass of a layer needs, cut to the length of the micro-batch; normalised inputs are
  /// computed again from it, and so is the MLP's activation where it is undefined. Statistics are fp32, the
  /// stream (input, middle) as numerics().residual says. With a parallel residual there is no middle.
  struct Views {
    at::Tensor input_nd, input_statistics_sn, middle_statistics_sn, qkv, attention, lse_hn, mlp_nf,
        activation_nf, middle_nd;
  };
  /// Writes attention and lse_hn of a layer from its qkv, or sets them where they are undefined.
  using Attend = std::function<void(size_t layer, Views& views)>;

  /// Forward, keeping nothing, with another attention than that within packed spans.
  at::Tensor ForwardWith(const DeviceInput& input, const Attend& attend);
  /// The rotary positions of a family that has them, or null.
  virtual const RopeTable* rope() const { return nullptr; }
  AttentionShape ShapeOf(int64_t num_tokens, size_t layer, AttentionMask mask = AttentionMask::kCausal) const;

  at::Tensor HiddenGradient(int64_t num_tokens) final {
    return Temporary(d_normed_, num_tokens, config().hidden_size);
  }
  std::unique_ptr<BodyDecoder> NewDecoder(int64_t max_tokens, int64_t sequences) final;
  SpanDependence DependenceOn(const std::vector<int32_t>& starts, AttentionMask mask) const final;
  int64_t activation_bytes() const final;
  int64_t pass_memory_bytes() const final;
  void ReleaseActivations() final;

 protected:
  /// What a family's layers keep, beside what all do.
  struct Sizes {
    int64_t norm_statistics = 1;     ///< values a row that a norm keeps
    int64_t mlp_inner = 0;           ///< columns of `mlp_nf` in Views
    bool parallel_residual = false;  ///< attention and MLP read the same input
  };
  /// Temporaries of a forward pass, storage type: [N, D], [N, D], [N, F], and with a parallel residual [N,
  /// D].
  struct ForwardScratch {
    at::Tensor normed_nd, update_nd, activation_nf, parallel_update_nd;
  };
  /// Temporaries of a backward pass. `d_stream_nd` is of the stream's type and zero at first; `d_short_nd` is
  /// what GEMMs read of it: itself where it has the storage type, else `d_rounded_nd`, which the backward
  /// passes of norms write as they add to the stream (undefined elsewhere).
  struct BackwardScratch {
    at::Tensor normed_nd, d_normed_nd, activation_nf, d_activation_nf, d_attention, d_qkv, d_stream_nd,
        d_short_nd, d_rounded_nd;
  };

  /// \param config of sizes that are positive
  /// \throws Error{kUsage} on an attention backend that cannot run
  Transformer(const ModelConfig& config, const Numerics& numerics, at::Device device, const Sizes& sizes,
              const FineTuning& tuning);
  /// \param input outlives it
  virtual std::unique_ptr<LayerPass> NewPass(const DeviceInput& input, const Attend& attend) = 0;
  std::unique_ptr<LayerPass> NewPass(const DeviceInput& input) final {
    return NewPass(input, PackedAttend(input));
  }

  static Views Named(const LayerViews& views);
  /// Hands what attention made to the layer's views.
  static void HandOver(const Views& views, LayerViews& kept);
  /// Whether the backward pass finds in the views of a layer what the forward pass wrote: qkv, attention,
  /// lse_hn and middle_nd; or mlp_nf. Inputs and statistics always stay, and of the last layer all.
  bool KeepsAttention(size_t layer) const { return Keeps(Stays::kUnlessFull, layer); }
  bool KeepsMlp(size_t layer) const { return Keeps(Stays::kUnlessSelectiveOrFull, layer); }
  /// Where the last norm keeps its input [N, D], of the stream's type, and statistics [S, N], fp32.
  at::Tensor OutputOf(int64_t num_tokens) {
    return TemporaryOfStream(output_, num_tokens, config().hidden_size);
  }
  at::Tensor OutputStatisticsOf(int64_t num_tokens) {
    return TemporaryFp32(output_statistics_, sizes_.norm_statistics, num_tokens);
  }
  ForwardScratch NewForwardScratch(int64_t num_tokens);
  BackwardScratch NewBackwardScratch(int64_t num_tokens);

 private:
  static std::vector<KeptTensor> KeptTensors(const ModelConfig& config, const Numerics& numerics,
                                             at::Device device, const Sizes& sizes);
  /// The attention of training: within the spans of a packed micro-batch.
  /// \param input outlives it
  Attend PackedAttend(const DeviceInput& input) const;

  Sizes sizes_;
  Buffer output_, output_statistics_, normed_, update_, parallel_update_, activation_, d_stream_, d_short_,
      d_normed_, d_activation_, d_attention_, d_qkv_;
};

}  // namespace trainwright
