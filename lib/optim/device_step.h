/// The end of a step decided where its gradients are, so that a GPU's queue never runs empty: norm, clipping,
/// loss scale and the reaction to numbers that are not finite (see lib/nn/update/step_decision.h), read by
/// the host only now and then. On any device; the numbers are those of DecideClip and LossScaler up to
/// rounding. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/device/host_read.h"
#include "lib/nn/update/step_decision.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/loss_sums.h"
#include "lib/optim/optimizer.h"

namespace trainwright {

/// What the host sees of the last finished step.
struct DeviceStepNumbers {
  StepState state{};
  std::vector<double> sums, denominators;  ///< of each term of the loss
};

class DeviceStep final : public LossSums {
 public:
  /// \param terms of the loss
  DeviceStep(at::Device device, size_t terms);
  /// The present one, fp64 [1].
  at::Tensor loss_scale() const;
  /// Adds to the running step's.
  void Add(const std::vector<double>& sums) override;
  void AddOnDevice(const at::Tensor& sums) override;
  /// Decides step `step` and updates the weights, or not.
  /// \param denominators of each term
  /// \param squares fp64 [1]: the sum of those of all gradients; undefined: of the optimizer's parameters'
  void Finish(int64_t step, const std::vector<int64_t>& denominators, double max_norm, bool scaled,
              double learning_rate, double momentum, Optimizer* optimizer, const at::Tensor& squares = {});
  /// Waits for a GPU.
  DeviceStepNumbers Read(HostReader* reader) const;
  /// For a restored run.
  void Set(const LossScaler::State& scaler, int64_t updates);

 private:
  at::Tensor Upload(const std::vector<double>& values) const;

  size_t terms_;
  at::Tensor numbers_;            ///< fp64: the two that follow side by side, so that one look reads both
  at::Tensor state_, term_rows_;  ///< fp64 [kStepStateFields], [kStepTermRows, terms]
  at::Tensor outputs_;            ///< fp32 [kStepOutputFields]
  at::Tensor squares_, part_squares_;  ///< fp64 [1]: of all gradients, of a part
};

}  // namespace trainwright
