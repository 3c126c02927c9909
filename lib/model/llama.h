/// The Llama-like families: RMSNorm, rotary positions, grouped-query attention, SwiGLU; Mistral's sliding
/// windows, Qwen2's biases. \source arXiv:2302.13971, arXiv:2310.06825, arXiv:2407.10671
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/transformer.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/position/rope.h"

namespace trainwright {

class Llama final : public Transformer {
 public:
  /// As MakeBody.
  Llama(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
        const FineTuning& tuning = {});
  const RopeTable* rope() const override { return &rope_; }

 protected:
  std::unique_ptr<LayerPass> NewPass(const DeviceInput& input, const Attend& attend) override;

 private:
  class Pass;
  struct Layer {
    size_t attention_norm, mlp_norm;
    Linear qkv, attention_out, gate_up, down;
  };

  static const ModelConfig& CheckedConfig(const ModelConfig& config);

  size_t embedding_ = 0, final_norm_ = 0;
  std::vector<Layer> layers_;
  RopeTable rope_;
};

}  // namespace trainwright
