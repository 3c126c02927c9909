#include "lib/optim/optimizer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"

namespace trainwright {
namespace {
constexpr int64_t kAveragedAtOnce = 1 << 18;  // elements
}  // namespace

Optimizer::Optimizer(FlatParameters* parameters)
    : parameters_(parameters), step_count_(at::full({}, 0.0, parameters->values().options())) {}

void Optimizer::Step(double learning_rate, double momentum, double factor) {
  step_count_.fill_(static_cast<double>(++steps_));
  Update({.learning_rate = learning_rate, .momentum = momentum, .inputs = {.step = step_count_}}, factor);
}

void Optimizer::StepOnDevice(double learning_rate, double momentum, const DeviceInputs& inputs) {
  Update({.learning_rate = learning_rate, .momentum = momentum, .inputs = inputs}, /*factor=*/1.0);
}

void Optimizer::Update(const OptimizerUpdate& update, double factor) {
  const ProfileScope scope("optimizer", ProfilePart::kOptimizer);
  Begin(update);
  is_updating_ = true;
  parameters_->ForEachGradientPart([&](int64_t begin, at::Tensor& gradients) {
    if (factor != 1.0) gradients.mul_(factor);
    Step({begin, gradients.numel()}, gradients, update);
  });
  if (average_.defined()) UpdateAverage(update.inputs);
  parameters_->RefreshCompute();
  is_updating_ = false;
}

void Optimizer::KeepAverage(double decay) {
  TRAINWRIGHT_CHECK(decay > 0 && decay < 1);
  average_decay_ = decay;
  average_ = NewState(at::kFloat);
}

void Optimizer::UpdateAverage(const DeviceInputs& inputs) {
  at::Tensor share = inputs.step.add(9).reciprocal_().mul_(10).clamp_min_(1 - average_decay_);
  if (inputs.found_inf.defined()) share.mul_(inputs.found_inf.neg().add_(1));
  const auto update = [&](int64_t begin, int64_t size, int64_t place) {
    at::Tensor average = average_.narrow(0, place, size), values = parameters_->Masters(begin, size);
    if (!average.is_cpu()) {
      average.lerp_(values, share);
      return;
    }
    // Each operation rounds by itself: bits do not depend on how threads and ranks cut the buffers, as they
    // would where vectors multiply and add at once and what is left of them does not.
    for (int64_t i = 0; i < size; i += kAveragedAtOnce) {
      const int64_t part = std::min(kAveragedAtOnce, size - i);
      at::Tensor own = average.narrow(0, i, part);
      own.add_(values.narrow(0, i, part).sub(own).mul_(share));
    }
  };
  if (parameters_->shard() == nullptr) return update(0, parameters_->elements(), 0);
  parameters_->shard()->ForEachPiece(
      [&](const ShardLayout::Piece& piece) { update(piece.begin, piece.size, piece.place); });
}

std::vector<OptimizerState> Optimizer::States() const {
  std::vector<OptimizerState> states = OwnStates();
  if (average_.defined()) states.push_back({.name = kAverageState, .value = average_, .by_element = true});
  return states;
}

at::Tensor Optimizer::NewState(at::ScalarType type) const {
  return at::zeros({parameters_->own_elements()}, parameters_->values().options().dtype(type));
}

int64_t Optimizer::state_bytes() const {
  int64_t size = 0;
  for (const OptimizerState& state : States()) size += static_cast<int64_t>(state.value.nbytes());
  return size;
}

}  // namespace trainwright
