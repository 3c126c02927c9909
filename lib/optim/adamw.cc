#include "lib/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/nn/ops.h"

namespace trainwright {

namespace {

at::ScalarType TypeOf(OptimizerStates states) {
  return states == OptimizerStates::kBf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace

AdamW::AdamW(FlatParameters* parameters, const AdamWOptions& options, uint64_t seed)
    : parameters_(parameters), options_(options), rounding_key_(Rng(seed, "optimizer-states").key()) {
  exp_avg_ = at::zeros_like(parameters->values(), TypeOf(options.states));
  exp_avg_sq_ = at::zeros_like(exp_avg_);
  step_count_ = at::full({}, 0.0, parameters->values().options());
  const Parameter* previous = nullptr;
  for (const Parameter& parameter : parameters->all()) {
    if (!parameter.trainable) continue;
    std::vector<Range>& ranges = parameter.decay ? decayed_ : undecayed_;
    if (previous != nullptr && previous->decay == parameter.decay) {
      ranges.back().size = parameter.offset + parameter.size - ranges.back().offset;
    } else {
      ranges.push_back({parameter.offset, parameter.size});
    }
    previous = &parameter;
  }
}

void AdamW::Step(double learning_rate, double beta1, double factor) {
  step_count_.fill_(static_cast<double>(++steps_));
  Update(learning_rate, beta1, factor, {.step = step_count_});
}

void AdamW::StepOnDevice(double learning_rate, double beta1, const DeviceInputs& inputs) {
  Update(learning_rate, beta1, /*factor=*/1.0, inputs);
}

void AdamW::Update(double learning_rate, double beta1, double factor, const DeviceInputs& inputs) {
  parameters_->ForEachGradientPart([&](int64_t begin, at::Tensor& gradients) {
    if (factor != 1.0) gradients.mul_(factor);
    UpdateRanges(decayed_, begin, gradients, learning_rate, beta1, options_.weight_decay, inputs);
    UpdateRanges(undecayed_, begin, gradients, learning_rate, beta1, 0.0, inputs);
  });
  parameters_->RefreshCompute();
}

void AdamW::UpdateRanges(const std::vector<Range>& ranges, int64_t begin, const at::Tensor& gradients,
                         double learning_rate, double beta1, double weight_decay,
                         const DeviceInputs& inputs) {
  std::vector<at::Tensor> values, own_gradients, first, second;
  std::vector<int64_t> places;
  for (const Range& range : ranges) {
    const int64_t from = std::max(range.offset, begin),
                  size = std::min(range.offset + range.size, begin + gradients.numel()) - from;
    if (size <= 0) continue;
    places.push_back(from);
    values.push_back(parameters_->values().narrow(0, from, size));
    own_gradients.push_back(gradients.narrow(0, from - begin, size));
    first.push_back(exp_avg_.narrow(0, from, size));
    second.push_back(exp_avg_sq_.narrow(0, from, size));
  }
  if (values.empty()) return;
  const auto optional = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  if (options_.states == OptimizerStates::kBf16) {
    for (size_t i = 0; i < values.size(); ++i) {
      ops::AdamWBf16Moments(values[i], own_gradients[i], first[i], second[i], places[i], learning_rate, beta1,
                            options_.beta2, weight_decay, options_.epsilon,
                            static_cast<int64_t>(rounding_key_), inputs.step, optional(inputs.divisor),
                            optional(inputs.found_inf));
    }
    return;
  }
  const std::vector<at::Tensor> steps(values.size(), inputs.step);
  at::_fused_adamw_(values, own_gradients, first, second, {}, steps, learning_rate, beta1, options_.beta2,
                    weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false,
                    optional(inputs.divisor), optional(inputs.found_inf));
}

}  // namespace trainwright
