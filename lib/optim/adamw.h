/// AdamW over a model's flat buffers. \source Loshchilov and Hutter 2019, arXiv:1711.05101
///
/// Decoupled decay applies to the parameters declared with `decay`, which are the matrices, embeddings among
/// them; norms and biases have none, as in GPT-3 and Llama and as nanoGPT groups them. A parameter's learning
/// rate, which its decay is multiplied by, too, is the update's times its own `rate`. State is two buffers of
/// the same layout as the trainable parameters, fp32 or stochastically rounded bf16
/// (lib/nn/update/bf16_moments.h), plus the number of steps. Frozen parameters have none. Sharded, a rank has
/// those of its shard, and rounds by their places in the flat buffers. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

class AdamW final : public Optimizer {
 public:
  /// \param seed of the rounding of bf16 moments, which is a function of it, the number of the update and the
  ///     place in the flat buffers
  AdamW(FlatParameters* parameters, const OptimizerOptions& options, uint64_t seed = 0);
  using Optimizer::Step;
  void Step(double learning_rate) { Step(learning_rate, options_.beta1); }
  /// The update's momentum is beta1, which bias correction takes as constant, as PyTorch's.
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override;
  bool repeats() const override { return true; }
  std::vector<OptimizerState> OwnStates() const override;
  /// First and second moment, of parameters->own_elements(). Restoring: copy into them.
  at::Tensor& exp_avg() { return exp_avg_; }
  at::Tensor& exp_avg_sq() { return exp_avg_sq_; }

 private:
  /// Of bf16 moments.
  void UpdateBf16(const Treatment& treatment, const std::vector<ParameterRange>& parts, int64_t begin,
                  const at::Tensor& gradients, const OptimizerUpdate& update);

  OptimizerOptions options_;
  uint64_t rounding_key_;
  ParameterRuns runs_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

/// Of AdamWDescription().
OptimizerKind AdamWKind();

}  // namespace trainwright
