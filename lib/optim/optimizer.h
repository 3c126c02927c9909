/// What changes a model's weights: an update of the flat buffers from their gradients.
///
/// The base class owns what all updates share: the walk over the gradients, which lie in parts where they are
/// offloaded, the count of updates, the compute copy and the moving average of the weights. An optimizer
/// supplies its rule for a range of the buffers, and names its state. Not thread-safe.
/// \source of the average: Polyak and Juditsky 1992; its beginning as tf.train.ExponentialMovingAverage's,
/// but for the weights before the first update, which are no part of it
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nn/parameters/flat_parameters.h"

namespace trainwright {

/// A tensor of an optimizer's state. It shares its storage with the optimizer: restoring copies into it.
struct OptimizerState {
  std::string name;  ///< in files too
  at::Tensor value;  ///< any shape and type, where the parameters are
  /// Whether it has a value for each element of the flat buffers; where these are sharded, of this rank's
  /// shard.
  bool by_element = false;
};

/// The state that is the moving average of the weights.
inline constexpr char kAverageState[] = "average";

/// Elements of the flat buffers.
struct ParameterRange {
  int64_t begin = 0, size = 0;
};

/// What a step on the device reads there, fp32 scalars: the gradients are divided by `divisor`; nothing
/// changes where `found_inf` is 1; `step` is the number of this update, from 1. `learning_rate` is
/// OptimizerUpdate's, an fp64 scalar.
struct DeviceInputs {
  at::Tensor divisor, found_inf, step, learning_rate;
};

/// What the ranges of an update share.
struct OptimizerUpdate {
  double learning_rate = 0;
  double momentum = 0;  ///< of this update, for schedules that cycle it: a decay, of optimizers that have one
  DeviceInputs inputs;  ///< `step` always; of an update that the host decides, the others are undefined
};

class Optimizer {
 public:
  /// \param parameters allocated; outlives the optimizer
  explicit Optimizer(FlatParameters* parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update from the parameters' gradients, then refreshes the compute copy.
  /// \param momentum as of OptimizerUpdate
  /// \param factor the gradients are multiplied by it first: see ClipResult
  /// \throws Error{kIo} where gradients are offloaded
  void Step(double learning_rate, double momentum, double factor = 1.0);
  /// As Step, but the host knows neither whether nor which update it is: steps() is the caller's to set.
  void StepOnDevice(double learning_rate, double momentum, const DeviceInputs& inputs);
  /// The update's rule for a range of the buffers. The ranges of an update cover the trained parameters once,
  /// padding among them; how they are cut changes no result. A range has whole segments of the parameters,
  /// as GradientBuffer keeps them, so that whole matrices can be worked on. Sharded, they cover this rank's
  /// shard, each within a block.
  /// \param gradients fp32 [range.size]; may be overwritten
  virtual void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) = 0;
  /// Whether all updates of one momentum that are decided on the device are the same kernels on the same
  /// memory, which read there what differs between them (DeviceInputs), so that they can be recorded once.
  virtual bool repeats() const { return false; }
  /// Keeps a moving average of the weights from now on, an fp32 state by_element named kAverageState. Update
  /// n brings it a share max(1 - decay, 10 / (n + 9)) of the way to the new weights, so that it begins with
  /// the first ones and spans about a tenth of the run while that is shorter than its memory.
  /// \param decay in (0, 1)
  void KeepAverage(double decay);
  /// The live state, always in the same order and under the same names: that of the rule, and the average.
  std::vector<OptimizerState> States() const;

  int64_t state_bytes() const;
  /// Whether a state is this rank's part of what all ranks have together.
  bool is_sharded(const OptimizerState& state) const {
    return state.by_element && parameters_->shard() != nullptr;
  }
  FlatParameters* parameters() const { return parameters_; }
  /// Whether an update has begun and not come to its end: after an error the weights are neither those before
  /// it nor those after it.
  bool is_updating() const { return is_updating_; }
  /// What an update takes for its time, beside the states, as far as it grows with the model.
  virtual int64_t scratch_bytes() const { return 0; }
  /// Updates made so far; bias correction depends on it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 protected:
  /// The rule's own part of States.
  virtual std::vector<OptimizerState> OwnStates() const = 0;
  /// Zeros for each element that this rank updates: a state by_element.
  at::Tensor NewState(at::ScalarType type) const;
  /// Called once before the ranges of an update.
  virtual void Begin(const OptimizerUpdate&) {}

 private:
  void Update(const OptimizerUpdate& update, double factor);
  void UpdateAverage(const DeviceInputs& inputs);

  FlatParameters* parameters_;
  int64_t steps_ = 0;
  bool is_updating_ = false;
  double average_decay_ = 0;
  at::Tensor average_;     // undefined: none is kept
  at::Tensor step_count_;  // float of steps_, made once: an update that has begun asks for no memory
};

}  // namespace trainwright
