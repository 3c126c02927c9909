/// AdamW with moments in 8 bits, as bitsandbytes.optim.AdamW8bit: lib/nn/update/adamw_8bit.h.
/// \source Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", arXiv:2110.02861;
/// bitsandbytes 0.50.2
///
/// A parameter of at least kLeast8BitElements elements has its moments in blocks of its own, 2 bytes an
/// element and 8 a block; smaller ones, such as norms and biases, have them in fp32, and are updated as
/// AdamW's. Decay and rates are AdamW's. Blocks are a parameter's, so it cannot be sharded. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

class AdamW8Bit final : public Optimizer {
 public:
  AdamW8Bit(FlatParameters* parameters, const OptimizerOptions& options);
  using Optimizer::Step;
  /// The update's momentum is beta1.
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override;
  bool repeats() const override { return true; }
  std::vector<OptimizerState> OwnStates() const override;

 private:
  /// A parameter with moments in 8 bits.
  struct Large {
    ParameterRange range;
    Treatment treatment;
    int64_t block = 0;  ///< its first
  };
  static std::vector<Large> LargeOf(const FlatParameters& parameters);
  void UpdateLarge(const Large& large, const at::Tensor& gradients, const OptimizerUpdate& update);

  OptimizerOptions options_;
  std::vector<Large> large_;
  ParameterRuns small_;
  at::Tensor signed_map_, unsigned_map_;
  at::Tensor exp_avg_, exp_avg_largest_, exp_avg_sq_, exp_avg_sq_largest_;
  at::Tensor small_exp_avg_, small_exp_avg_sq_;
};

/// The values that codes of 8 bits stand for: bitsandbytes' create_dynamic_map, which has more of them near
/// zero. Seven times, from 10^-6 to 1 by powers of ten, the middles of equal parts of [0.1, 1] of it, of
/// which each has twice as many as the one before; zero and 1; signed, their negatives but for -1, too.
/// \returns fp32 [kMapSize] of the host, ascending
at::Tensor DynamicMap(bool is_signed);

/// Of AdamW8BitDescription().
OptimizerKind AdamW8BitKind();

}  // namespace trainwright
