/// The end of a step decided where its gradients are, so that a GPU's queue never runs empty: norm, clipping,
/// loss scale and the reaction to numbers that are not finite (see lib/nn/update/step_decision.h), read by the host
/// only now and then. On any device; the numbers are those of DecideClip and LossScaler up to rounding.
/// Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/device/host_read.h"
#include "lib/nn/loss/linear_cross_entropy.h"
#include "lib/nn/update/step_decision.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/optimizer.h"

namespace trainwright {

class DeviceStep {
 public:
  explicit DeviceStep(at::Device device);
  /// What a step's gradients are multiplied by, the present loss scale included.
  /// \param labels of the step
  GradientScale Scale(int64_t labels) const;
  /// Adds a micro-batch's losses to the running step's.
  void AddLoss(const LossSum& sum);
  /// Decides step `step` and updates the weights, or not.
  void Finish(int64_t step, int64_t labels, double max_norm, bool scaled, double learning_rate, double beta1,
              Optimizer* optimizer);
  /// What the host sees of it; waits for a GPU.
  StepState Read(HostReader* reader) const;
  /// For a restored run.
  void Set(const LossScaler::State& scaler, int64_t updates);

 private:
  at::Tensor state_, outputs_;         ///< fp64 [kStepStateFields], fp32 [kStepOutputFields]
  at::Tensor squares_, part_squares_;  ///< fp64 [1]: of all gradients, of a part
};

}  // namespace trainwright
