/// The Llama-like families: RMSNorm, rotary positions, grouped-query attention, SwiGLU; Mistral's sliding
/// windows, Qwen2's biases. \source arXiv:2302.13971, arXiv:2310.06825, arXiv:2407.10671
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/model/transformer.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

class Llama final : public Transformer {
 public:
  /// As MakeModel, with the storage chosen by the caller.
  Llama(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
        const FineTuning& tuning = {});

 protected:
  at::Tensor Forward(const DeviceInput& input, bool keep, const Attend& attend) override;
  void Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) override;
  size_t head() const override { return head_; }
  const RopeTable* rope() const override { return &rope_; }

 private:
  struct Layer {
    size_t attention_norm, mlp_norm;
    Linear qkv, attention_out, gate_up, down;
  };

  static const ModelConfig& CheckedConfig(const ModelConfig& config);
  RopeRows RowsOf(const DeviceInput& input);
  /// The first half of a layer's forward pass, to its middle.
  /// \param normed_nd the normalised input, becomes the normalised middle
  /// \param update_nd scratch
  void ForwardAttention(size_t index, const RopeRows& rope, const Attend& attend, at::Tensor& normed_nd,
                        LayerViews& views, at::Tensor& update_nd);
  /// Computes again what the views of a layer have lost. Uses normed_nd and d_normed_nd of the scratch.
  void ForwardAgain(size_t index, const DeviceInput& input, const RopeRows& rope, LayerViews& views,
                    BackwardScratch& scratch);

  size_t embedding_ = 0, final_norm_ = 0, head_ = 0;
  std::vector<Layer> layers_;
  RopeTable rope_;
};

}  // namespace trainwright
