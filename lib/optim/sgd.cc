#include "lib/optim/sgd.h"

#include <ATen/ops/_fused_sgd.h>

#include <cstdint>
#include <memory>

#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

Sgd::Sgd(FlatParameters* parameters, const OptimizerOptions& options)
    : Optimizer(parameters),
      weight_decay_(options.weight_decay),
      nesterov_(options.own.at("nesterov").number() != 0),
      runs_(*parameters),
      momentum_(NewState(at::kFloat)) {}

std::vector<OptimizerState> Sgd::OwnStates() const {
  return {{.name = "momentum", .value = momentum_, .by_element = true}};
}

void Sgd::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  const DeviceInputs& inputs = update.inputs;
  runs_.ForEach(range, [&](const Treatment& treatment, const std::vector<ParameterRange>& parts) {
    std::vector<at::Tensor> values, own_gradients, momentum;
    for (const ParameterRange& part : parts) {
      values.push_back(parameters()->Masters(part.begin, part.size));
      own_gradients.push_back(gradients.narrow(0, part.begin - range.begin, part.size));
      if (update.momentum == 0) continue;
      momentum.push_back(momentum_.narrow(0, parameters()->PlaceOf(part.begin), part.size));
    }
    const auto step = [&](const auto& learning_rate) {
      at::_fused_sgd_(values, own_gradients, momentum, treatment.decay ? weight_decay_ : 0.0, update.momentum,
                      learning_rate, /*dampening=*/0.0, nesterov_ && update.momentum != 0,
                      /*maximize=*/false, /*is_first_step=*/false, IfDefined(inputs.divisor),
                      IfDefined(inputs.found_inf));
    };
    if (!inputs.learning_rate.defined()) return step(update.learning_rate * treatment.rate);
    step(inputs.learning_rate.mul(treatment.rate).to(at::kFloat));
  });
}

OptimizerKind SgdKind() {
  return {.description = SgdDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t) {
            return std::make_unique<Sgd>(parameters, options);
          }};
}

}  // namespace trainwright
