/// AdamW over a model's flat buffers. \source Loshchilov and Hutter 2019, arXiv:1711.05101
///
/// Decoupled decay applies to the parameters declared with `decay`, which are the matrices, embeddings among
/// them; norms and biases have none, as in GPT-3 and Llama and as nanoGPT groups them. State is two buffers
/// of the same layout as the trainable parameters, fp32 or stochastically rounded bf16
/// (lib/nn/update/bf16_moments.h), plus the number of steps. Frozen parameters have none. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

using AdamWOptions = OptimizerOptions;

class AdamW {
 public:
  /// \param parameters allocated; outlives the optimizer
  /// \param seed of the rounding of bf16 moments, which is a function of it, the number of the update and the
  ///     place in the flat buffers
  AdamW(FlatParameters* parameters, const AdamWOptions& options, uint64_t seed = 0);
  /// One update from the parameters' gradients, then refreshes the compute copy.
  /// \param beta1 of this step, for schedules that cycle it; bias correction takes it as constant, as
  ///     PyTorch's
  /// \param factor the gradients are multiplied by it first: see ClipResult
  /// \throws Error{kIo} where gradients are offloaded
  void Step(double learning_rate, double beta1, double factor = 1.0);
  /// What a step on the device reads there, fp32 scalars: the gradients are divided by `divisor`; nothing
  /// changes where `found_inf` is 1; `step` is the number of this update.
  struct DeviceInputs {
    at::Tensor divisor, found_inf, step;
  };
  /// As Step, but the host knows neither whether nor which update it is: steps() is the caller's to set.
  void StepOnDevice(double learning_rate, double beta1, const DeviceInputs& inputs);
  FlatParameters* parameters() { return parameters_; }
  void Step(double learning_rate) { Step(learning_rate, options_.beta1); }
  const AdamWOptions& options() const { return options_; }
  /// First and second moment, laid out as parameters->values(). Restoring: copy into them.
  at::Tensor& exp_avg() { return exp_avg_; }
  at::Tensor& exp_avg_sq() { return exp_avg_sq_; }
  const at::Tensor& exp_avg() const { return exp_avg_; }
  int64_t state_bytes() const { return static_cast<int64_t>(exp_avg_.nbytes() + exp_avg_sq_.nbytes()); }
  /// Updates made so far; bias correction depends on it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Range {
    int64_t offset, size;
  };
  void Update(double learning_rate, double beta1, double factor, const DeviceInputs& inputs);
  /// The ranges' elements that are among those of `gradients`, of which `begin` is the place of the first.
  void UpdateRanges(const std::vector<Range>& ranges, int64_t begin, const at::Tensor& gradients,
                    double learning_rate, double beta1, double weight_decay, const DeviceInputs& inputs);

  FlatParameters* parameters_;
  AdamWOptions options_;
  uint64_t rounding_key_;
  std::vector<Range> decayed_, undecayed_;  // maximal runs of parameters of one kind
  at::Tensor exp_avg_, exp_avg_sq_;
  int64_t steps_ = 0;
  at::Tensor step_count_;  // float of steps_, made once: an update that has begun asks for no memory
};

}  // namespace trainwright
