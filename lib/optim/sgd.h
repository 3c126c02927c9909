/// Stochastic gradient descent with momentum over a model's flat buffers, as torch.optim.SGD with dampening
/// 0. \source PyTorch 2.9, torch.optim.SGD; Sutskever et al. 2013, "On the importance of initialization and
/// momentum in deep learning"
///
/// With decay w, which is coupled (it goes through the momentum) and of parameters declared with `decay`
/// alone: g += w v; m = beta1 m + g; v -= learning rate m, or with nesterov learning rate (g + beta1 m). The
/// momentum begins at zero, which makes its first value g, as PyTorch's is. State is one fp32 buffer of the
/// layout of the trainable parameters; it is kept at beta1 0, too. The kernels are torch's fused ones, in
/// fp32. Sharded, a rank has the momentum of its shard. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

class Sgd final : public Optimizer {
 public:
  /// \param options with all own ones: "nesterov", 0 or 1
  Sgd(FlatParameters* parameters, const OptimizerOptions& options);
  using Optimizer::Step;
  /// The update's momentum is beta1.
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override;
  bool repeats() const override { return true; }
  std::vector<OptimizerState> OwnStates() const override;

 private:
  double weight_decay_;
  bool nesterov_;
  ParameterRuns runs_;
  at::Tensor momentum_;
};

/// Of SgdDescription().
OptimizerKind SgdKind();

}  // namespace trainwright
