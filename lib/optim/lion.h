/// Lion (evolved sign momentum) with decoupled decay over a model's flat buffers. \source Chen et al. 2023,
/// arXiv:2302.06675, Algorithm 2, as lion-pytorch 0.2.5 implements it
///
/// The rule of an element is lib/nn/update/lion.h's. Every element moves by the learning rate, whatever its
/// gradient is: the learning rate is a third to a tenth of AdamW's, the decay as many times more. Decay is of
/// parameters declared with `decay` alone. State is one fp32 buffer of the layout of the trainable
/// parameters. Sharded, a rank has the momentum of its shard. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

class Lion final : public Optimizer {
 public:
  Lion(FlatParameters* parameters, const OptimizerOptions& options);
  using Optimizer::Step;
  /// The update's momentum is beta1.
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override;
  bool repeats() const override { return true; }
  std::vector<OptimizerState> OwnStates() const override;

 private:
  double beta2_, weight_decay_;
  ParameterRuns runs_;
  at::Tensor exp_avg_;
};

/// Of LionDescription().
OptimizerKind LionKind();

}  // namespace trainwright
