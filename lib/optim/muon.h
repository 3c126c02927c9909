/// Muon for the matrices of a model's layers, AdamW for its other parameters. \source Jordan et al. 2024,
/// "Muon: An optimizer for hidden layers in neural networks", as torch.optim.Muon of PyTorch 2.9 implements
/// it; match_rms_adamw: Liu et al. 2025, "Muon is Scalable for LLM Training", arXiv:2502.16982
///
/// Of a matrix V [A, B] with gradient G: M = momentum M + (1 - momentum) G; U = M, or with nesterov momentum
/// M + (1 - momentum) G; O = NewtonSchulz(U); V = (1 - l w) V - l s O, with learning rate l, decay w, and s
/// = 0.2 sqrt(max(A, B)) with match_rms_adamw, which makes an update as large as AdamW's usually are, so that
/// both take one learning rate; else sqrt(max(1, A / B)). Matrices of layers are what ProductMatrices names,
/// the matrices of adapters among them; a projection that is stored fused is one matrix. All others -
/// embeddings, head, norms, biases, convolutions - are AdamW's, with the learning rate times adamw_factor.
///
/// NewtonSchulz of X, the transpose of a tall matrix, which its Frobenius norm (at least 1e-7) divides first:
/// ns_steps times A = X X^T, X = 3.4445 X + (-4.7750 A + 2.0315 A A) X. It is batched over the matrices of
/// one shape in a segment of the flat buffers, so that its scratch memory is a layer's and offloaded
/// gradients change no bit. On a CPU it is computed in fp32, elsewhere in bf16, as published; all else is
/// fp32.
///
/// State is exp_avg, of the layout of the trainable parameters, which is Muon's momentum and AdamW's first
/// moment, and exp_avg_sq of AdamW's parameters alone. It needs whole matrices: it cannot be sharded. Not
/// thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

class Muon final : public Optimizer {
 public:
  /// \param options with all own ones of MuonDescription
  Muon(FlatParameters* parameters, const OptimizerOptions& options);
  using Optimizer::Step;
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override;
  bool repeats() const override { return true; }
  int64_t scratch_bytes() const override;
  std::vector<OptimizerState> OwnStates() const override;

 private:
  /// Matrices that are worked on together.
  struct Batch {
    int64_t rows = 0, columns = 0;
    Treatment treatment;
    std::vector<int64_t> offsets;
  };
  static std::vector<Batch> BatchesOf(const FlatParameters& parameters);
  void UpdateBatch(const Batch& batch, int64_t begin, const at::Tensor& gradients,
                   const OptimizerUpdate& update);
  /// The momentum's update.
  /// \returns what is made orthogonal, [n, A, B] or of tall matrices [n, B, A]
  at::Tensor TakeGradients(const Batch& batch, int64_t begin, const at::Tensor& gradients,
                           const DeviceInputs& inputs);

  OptimizerOptions options_;
  double momentum_, adamw_factor_;
  int64_t ns_steps_;
  bool nesterov_, match_rms_adamw_;
  std::vector<Batch> batches_;
  ParameterRuns others_;  // AdamW's
  at::Tensor exp_avg_, exp_avg_sq_;
};

/// The iteration of Muon, in the type of its argument.
/// \param x_nab [n, A, B] with A <= B; overwritten
/// \returns [n, A, B] with singular values near 1
at::Tensor NewtonSchulz(at::Tensor x_nab, int64_t steps);

/// Of MuonDescription().
OptimizerKind MuonKind();

}  // namespace trainwright
