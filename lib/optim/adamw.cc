#include "lib/optim/adamw.h"

#include <memory>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/nn/ops.h"
#include "lib/optim/fused_adamw.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

namespace {

at::ScalarType TypeOf(OptimizerStates states) {
  return states == OptimizerStates::kBf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace

AdamW::AdamW(FlatParameters* parameters, const OptimizerOptions& options, uint64_t seed)
    : Optimizer(parameters),
      options_(options),
      rounding_key_(Rng(seed, "optimizer-states").key()),
      runs_(*parameters) {
  exp_avg_ = NewState(TypeOf(options.states));
  exp_avg_sq_ = NewState(TypeOf(options.states));
}

std::vector<OptimizerState> AdamW::OwnStates() const {
  return {{.name = "exp_avg", .value = exp_avg_, .by_element = true},
          {.name = "exp_avg_sq", .value = exp_avg_sq_, .by_element = true}};
}

void AdamW::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  runs_.ForEach(range, [&](const Treatment& treatment, const std::vector<ParameterRange>& parts) {
    if (options_.states == OptimizerStates::kBf16) {
      return UpdateBf16(treatment, parts, range.begin, gradients, update);
    }
    FusedAdamWTensors tensors;
    for (const ParameterRange& part : parts) {
      const int64_t place = parameters()->PlaceOf(part.begin);
      tensors.values.push_back(parameters()->Masters(part.begin, part.size));
      tensors.gradients.push_back(gradients.narrow(0, part.begin - range.begin, part.size));
      tensors.exp_avg.push_back(exp_avg_.narrow(0, place, part.size));
      tensors.exp_avg_sq.push_back(exp_avg_sq_.narrow(0, place, part.size));
    }
    FusedAdamW(options_, treatment, update, tensors);
  });
}

void AdamW::UpdateBf16(const Treatment& treatment, const std::vector<ParameterRange>& parts, int64_t begin,
                       const at::Tensor& gradients, const OptimizerUpdate& update) {
  const DeviceInputs& inputs = update.inputs;
  for (const ParameterRange& part : parts) {
    const int64_t place = parameters()->PlaceOf(part.begin);
    at::Tensor values = parameters()->Masters(part.begin, part.size),
               first = exp_avg_.narrow(0, place, part.size), second = exp_avg_sq_.narrow(0, place, part.size);
    ops::AdamWBf16Moments(
        values, gradients.narrow(0, part.begin - begin, part.size), first, second, part.begin,
        inputs.learning_rate.defined() ? treatment.rate : update.learning_rate * treatment.rate,
        update.momentum, options_.beta2, treatment.decay ? options_.weight_decay : 0.0, options_.epsilon,
        static_cast<int64_t>(rounding_key_), inputs.step, IfDefined(inputs.divisor),
        IfDefined(inputs.found_inf), IfDefined(inputs.learning_rate));
  }
}

OptimizerKind AdamWKind() {
  return {.description = AdamWDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t seed) {
            return std::make_unique<AdamW>(parameters, options, seed);
          }};
}

}  // namespace trainwright
