#include "lib/optim/device_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/device/upload.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

constexpr int64_t kLossScale = offsetof(StepState, loss_scale) / sizeof(double);
constexpr int64_t kLearningRate = offsetof(StepInputs, learning_rate) / sizeof(double);

at::Tensor UploadDoubles(const std::vector<double>& values, at::Device device) {
  at::Tensor host = at::empty({std::ssize(values)}, at::kDouble);
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<double>());
  return Upload(host, device);
}

/// StepOutputs as scalars of an fp32 tensor.
at::Tensor Output(const at::Tensor& outputs, size_t offset) {
  return outputs.select(0, static_cast<int64_t>(offset / sizeof(float)));
}

}  // namespace

DeviceStep::DeviceStep(at::Device device, size_t terms)
    : terms_(terms),
      numbers_(at::zeros({kStepStateFields + kStepTermRows * static_cast<int64_t>(terms)},
                         at::TensorOptions().dtype(at::kDouble).device(device))),
      state_(numbers_.narrow(0, 0, kStepStateFields)),
      term_rows_(numbers_.narrow(0, kStepStateFields, numbers_.numel() - kStepStateFields)
                     .view({kStepTermRows, static_cast<int64_t>(terms)})),
      inputs_(at::zeros({kStepInputFields + static_cast<int64_t>(terms)}, numbers_.options())),
      outputs_(at::zeros({kStepOutputFields}, at::TensorOptions().dtype(at::kFloat).device(device))),
      squares_(at::zeros({1}, numbers_.options())),
      part_squares_(at::zeros({1}, numbers_.options())) {
  state_.select(0, kLossScale).fill_(1.0);
}

at::Tensor DeviceStep::loss_scale() const {
  return state_.narrow(0, kLossScale, 1);
}

void DeviceStep::Add(const std::vector<double>& sums) {
  TRAINWRIGHT_CHECK(sums.size() == terms_);
  AddOnDevice(UploadDoubles(sums, numbers_.device()));
}

void DeviceStep::AddOnDevice(const at::Tensor& sums) {
  term_rows_.select(0, 0).add_(sums);
}

void DeviceStep::Finish(int64_t step, const std::vector<int64_t>& denominators, double max_norm, bool scaled,
                        double learning_rate, double momentum, Optimizer* optimizer,
                        const at::Tensor& squares) {
  TRAINWRIGHT_CHECK(denominators.size() == terms_);
  {
    const ProfileScope scope("step_inputs", ProfilePart::kUpload);
    std::vector<double> inputs = {static_cast<double>(step), learning_rate};
    inputs.insert(inputs.end(), denominators.begin(), denominators.end());
    inputs_.copy_(UploadDoubles(inputs, inputs_.device()));
  }
  const auto update = [&] { Update(max_norm, scaled, learning_rate, momentum, optimizer, squares); };
  if (!graph_) return update();
  FlatParameters* parameters = optimizer->parameters();
  if (!optimizer->repeats()) return graph_->RunOnce("the optimizer's kernels are not repeated", update);
  if (squares.defined() || parameters->shard() != nullptr || !parameters->gradient_buffer().is_whole()) {
    return graph_->RunOnce("gradients or states are divided", update);
  }
  parameters->gradients();  // those that no pass has written are zeroed now
  graph_->Run({max_norm, scaled, momentum}, update);
}

void DeviceStep::Update(double max_norm, bool scaled, double learning_rate, double momentum,
                        Optimizer* optimizer, const at::Tensor& squares) {
  const ProfileScope scope("finish_step", ProfilePart::kClip);
  if (squares.defined()) {
    squares_.copy_(squares);
  } else {
    squares_.zero_();
    optimizer->parameters()->ForEachGradientPart([&](int64_t, const at::Tensor& gradients) {
      ops::SumOfSquares(gradients, part_squares_);
      squares_.add_(part_squares_);
    });
  }
  ops::FinishStep(squares_, inputs_, max_norm, scaled, state_, term_rows_, outputs_);
  optimizer->StepOnDevice(learning_rate, momentum,
                          {.divisor = Output(outputs_, offsetof(StepOutputs, gradient_divisor)),
                           .found_inf = Output(outputs_, offsetof(StepOutputs, found_inf)),
                           .step = Output(outputs_, offsetof(StepOutputs, update)),
                           .learning_rate = inputs_.select(0, kLearningRate)});
}

DeviceStepNumbers DeviceStep::Read(HostReader* reader) const {
  const at::Tensor host = reader->Read(numbers_);
  DeviceStepNumbers numbers;
  std::memcpy(&numbers.state, host.const_data_ptr<double>(), sizeof(numbers.state));
  const double* sums = host.const_data_ptr<double>() + kStepStateFields + terms_;
  numbers.sums.assign(sums, sums + terms_);
  numbers.denominators.assign(sums + terms_, sums + 2 * terms_);
  return numbers;
}

void DeviceStep::Set(const StepGuard::State& guard, int64_t updates, const std::vector<double>& weights) {
  if (guard.outliers.limits.any() && weights.size() > kMostWatchedTerms) {
    throw Error(ErrorCode::kUsage, "--skip-loss-z",
                "outliers of a loss of " + std::to_string(weights.size()) + " terms are not skipped on a GPU",
                "", "leave out --skip-loss-z and --skip-grad-z");
  }
  StepState state{};
  state.loss_scale = guard.scaler.scale;
  state.good_steps = static_cast<double>(guard.scaler.good_steps);
  state.skipped_steps = static_cast<double>(guard.scaler.skipped_steps);
  state.updates = static_cast<double>(updates);
  state.outliers = guard.outliers;
  std::copy_n(weights.begin(), std::min<size_t>(weights.size(), kMostWatchedTerms), state.term_weights);
  at::Tensor host = at::zeros({numbers_.numel()}, at::kDouble);
  std::memcpy(host.mutable_data_ptr<double>(), &state, sizeof(state));
  numbers_.copy_(host);
}

}  // namespace trainwright
