#include "lib/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <optional>

namespace trainwright {

AdamW::AdamW(FlatParameters* parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options) {
  exp_avg_ = at::zeros_like(parameters->values());
  exp_avg_sq_ = at::zeros_like(parameters->values());
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
