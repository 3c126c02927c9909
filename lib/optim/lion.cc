#include "lib/optim/lion.h"

#include <cstdint>
#include <memory>

#include "lib/nn/ops.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

Lion::Lion(FlatParameters* parameters, const OptimizerOptions& options)
    : Optimizer(parameters),
      beta2_(options.beta2),
      weight_decay_(options.weight_decay),
      runs_(*parameters),
      exp_avg_(NewState(at::kFloat)) {}

std::vector<OptimizerState> Lion::OwnStates() const {
  return {{.name = "exp_avg", .value = exp_avg_, .by_element = true}};
}

void Lion::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  const DeviceInputs& inputs = update.inputs;
  runs_.ForEach(range, [&](const Treatment& treatment, const std::vector<ParameterRange>& parts) {
    for (const ParameterRange& part : parts) {
      at::Tensor values = parameters()->Masters(part.begin, part.size),
                 exp_avg = exp_avg_.narrow(0, parameters()->PlaceOf(part.begin), part.size);
      ops::Lion(values, gradients.narrow(0, part.begin - range.begin, part.size), exp_avg,
                inputs.learning_rate.defined() ? treatment.rate : update.learning_rate * treatment.rate,
                update.momentum, beta2_, treatment.decay ? weight_decay_ : 0.0, IfDefined(inputs.divisor),
                IfDefined(inputs.found_inf), IfDefined(inputs.learning_rate));
    }
  });
}

OptimizerKind LionKind() {
  return {.description = LionDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t) {
            return std::make_unique<Lion>(parameters, options);
          }};
}

}  // namespace trainwright
