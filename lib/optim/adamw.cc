#include "lib/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

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

void AdamW::Step(double learning_rate, double beta1) {
  ++steps_;
  StepOnDevice(learning_rate, beta1,
               {.step = at::full({}, static_cast<double>(steps_), parameters_->values().options())});
}

void AdamW::StepOnDevice(double learning_rate, double beta1, const DeviceInputs& inputs) {
  Update(decayed_, learning_rate, beta1, options_.weight_decay, inputs);
  Update(undecayed_, learning_rate, beta1, 0.0, inputs);
  parameters_->RefreshCompute();
}

void AdamW::Update(const std::vector<Range>& ranges, double learning_rate, double beta1, double weight_decay,
                   const DeviceInputs& inputs) {
  if (ranges.empty()) return;
  const auto optional = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  if (options_.states == OptimizerStates::kBf16) {
    at::Tensor& values = parameters_->values();
    for (const Range& range : ranges) {
      ops::AdamWBf16Moments(values, parameters_->gradients(), exp_avg_, exp_avg_sq_, range.offset,
                            range.offset + range.size, learning_rate, beta1, options_.beta2, weight_decay,
                            options_.epsilon, static_cast<int64_t>(rounding_key_), inputs.step,
                            optional(inputs.divisor), optional(inputs.found_inf));
    }
    return;
  }
  std::vector<at::Tensor> values, gradients, first, second;
  for (const Range& range : ranges) {
    values.push_back(parameters_->values().narrow(0, range.offset, range.size));
    gradients.push_back(parameters_->gradients().narrow(0, range.offset, range.size));
    first.push_back(exp_avg_.narrow(0, range.offset, range.size));
    second.push_back(exp_avg_sq_.narrow(0, range.offset, range.size));
  }
  const std::vector<at::Tensor> steps(ranges.size(), inputs.step);
  at::_fused_adamw_(values, gradients, first, second, {}, steps, learning_rate, beta1, options_.beta2,
                    weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false,
                    optional(inputs.divisor), optional(inputs.found_inf));
}

}  // namespace trainwright
