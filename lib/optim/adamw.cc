#include "lib/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/nn/ops.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

namespace {

at::ScalarType TypeOf(OptimizerStates states) {
  return states == OptimizerStates::kBf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace

AdamW::AdamW(FlatParameters* parameters, const OptimizerOptions& options, uint64_t seed)
    : Optimizer(parameters), options_(options), rounding_key_(Rng(seed, "optimizer-states").key()) {
  exp_avg_ = NewState(TypeOf(options.states));
  exp_avg_sq_ = NewState(TypeOf(options.states));
  const std::vector<ParameterRange>* previous = nullptr;
  for (const Parameter& parameter : parameters->all()) {
    if (!parameter.trainable) continue;
    std::vector<ParameterRange>& runs = runs_[{parameter.decay, parameter.rate}];
    if (previous == &runs) {
      runs.back().size = parameter.offset + parameter.size - runs.back().begin;
    } else {
      runs.push_back({parameter.offset, parameter.size});
    }
    previous = &runs;
  }
}

std::vector<OptimizerState> AdamW::OwnStates() const {
  return {{.name = "exp_avg", .value = exp_avg_, .by_element = true},
          {.name = "exp_avg_sq", .value = exp_avg_sq_, .by_element = true}};
}

void AdamW::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  for (const auto& [treatment, runs] : runs_) UpdateRuns(treatment, runs, range, gradients, update);
}

void AdamW::UpdateRuns(const Treatment& treatment, const std::vector<ParameterRange>& runs,
                       const ParameterRange& range, const at::Tensor& gradients,
                       const OptimizerUpdate& update) {
  std::vector<at::Tensor> values, own_gradients, first, second;
  std::vector<int64_t> places;
  for (const ParameterRange& run : runs) {
    const int64_t from = std::max(run.begin, range.begin),
                  size = std::min(run.begin + run.size, range.begin + range.size) - from;
    if (size <= 0) continue;
    const int64_t place = parameters()->PlaceOf(from);
    places.push_back(from);
    values.push_back(parameters()->Masters(from, size));
    own_gradients.push_back(gradients.narrow(0, from - range.begin, size));
    first.push_back(exp_avg_.narrow(0, place, size));
    second.push_back(exp_avg_sq_.narrow(0, place, size));
  }
  if (values.empty()) return;
  const DeviceInputs& inputs = update.inputs;
  const bool rate_on_device = inputs.learning_rate.defined();
  const double weight_decay = treatment.decay ? options_.weight_decay : 0.0;
  const auto optional = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  if (options_.states == OptimizerStates::kBf16) {
    for (size_t i = 0; i < values.size(); ++i) {
      ops::AdamWBf16Moments(values[i], own_gradients[i], first[i], second[i], places[i],
                            rate_on_device ? treatment.rate : update.learning_rate * treatment.rate,
                            update.momentum, options_.beta2, weight_decay, options_.epsilon,
                            static_cast<int64_t>(rounding_key_), inputs.step, optional(inputs.divisor),
                            optional(inputs.found_inf), optional(inputs.learning_rate));
    }
    return;
  }
  const std::vector<at::Tensor> steps(values.size(), inputs.step);
  const auto step = [&](const auto& learning_rate) {
    at::_fused_adamw_(values, own_gradients, first, second, {}, steps, learning_rate, update.momentum,
                      options_.beta2, weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false,
                      optional(inputs.divisor), optional(inputs.found_inf));
  };
  if (!rate_on_device) return step(update.learning_rate * treatment.rate);
  step(inputs.learning_rate.mul(treatment.rate).to(at::kFloat));
}

OptimizerKind AdamWKind() {
  return {.description = AdamWDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t seed) {
            return std::make_unique<AdamW>(parameters, options, seed);
          }};
}

}  // namespace trainwright
