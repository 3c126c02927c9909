#include "lib/optim/device_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstddef>
#include <cstring>

#include "lib/device/upload.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

constexpr int64_t kLossScale = offsetof(StepState, loss_scale) / sizeof(double);

/// StepOutputs as scalars of an fp32 tensor.
at::Tensor Output(const at::Tensor& outputs, size_t offset) {
  return outputs.select(0, static_cast<int64_t>(offset / sizeof(float)));
}

}  // namespace

DeviceStep::DeviceStep(at::Device device)
    : state_(at::zeros({kStepStateFields}, at::TensorOptions().dtype(at::kDouble).device(device))),
      outputs_(at::zeros({kStepOutputFields}, at::TensorOptions().dtype(at::kFloat).device(device))),
      squares_(at::zeros({1}, state_.options())),
      part_squares_(at::zeros({1}, state_.options())) {
  state_.select(0, kLossScale).fill_(1.0);
}

GradientScale DeviceStep::Scale(int64_t labels) const {
  return {1.0 / static_cast<double>(labels), state_.narrow(0, kLossScale, 1)};
}

void DeviceStep::AddLoss(const LossSum& sum) {
  at::Tensor sums = sum.on_device;
  if (!sums.defined()) {
    at::Tensor host = at::empty({3}, at::kDouble);
    double* values = host.mutable_data_ptr<double>();
    values[0] = sum.loss_nats, values[1] = sum.smoothing_nats, values[2] = sum.z_loss_nats;
    sums = Upload(host, state_.device());
  }
  state_.narrow(0, 0, 3).add_(sums);
}

void DeviceStep::Finish(int64_t step, int64_t labels, double max_norm, bool scaled, double learning_rate,
                        double beta1, Optimizer* optimizer) {
  squares_.zero_();
  optimizer->parameters()->ForEachGradientPart([&](int64_t, const at::Tensor& gradients) {
    ops::SumOfSquares(gradients, part_squares_);
    squares_.add_(part_squares_);
  });
  ops::FinishStep(squares_, step, labels, max_norm, scaled, state_, outputs_);
  optimizer->StepOnDevice(learning_rate, beta1,
                          {.divisor = Output(outputs_, offsetof(StepOutputs, gradient_divisor)),
                           .found_inf = Output(outputs_, offsetof(StepOutputs, found_inf)),
                           .step = Output(outputs_, offsetof(StepOutputs, adam_step))});
}

StepState DeviceStep::Read(HostReader* reader) const {
  StepState state;
  std::memcpy(&state, reader->Read(state_).const_data_ptr<double>(), sizeof(state));
  return state;
}

void DeviceStep::Set(const LossScaler::State& scaler, int64_t updates) {
  StepState state{};
  state.loss_scale = scaler.scale;
  state.good_steps = static_cast<double>(scaler.good_steps);
  state.skipped_steps = static_cast<double>(scaler.skipped_steps);
  state.updates = static_cast<double>(updates);
  at::Tensor host = at::empty({kStepStateFields}, at::kDouble);
  std::memcpy(host.mutable_data_ptr<double>(), &state, sizeof(state));
  state_.copy_(host);
}

}  // namespace trainwright
