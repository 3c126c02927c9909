#include "lib/optim/fused_adamw.h"

#include <ATen/ops/_fused_adamw.h>

namespace trainwright {

void FusedAdamW(const OptimizerOptions& options, const Treatment& treatment, const OptimizerUpdate& update,
                const FusedAdamWTensors& tensors, double factor) {
  const DeviceInputs& inputs = update.inputs;
  const double rate = treatment.rate * factor;
  const std::vector<at::Tensor> steps(tensors.values.size(), inputs.step);
  const auto step = [&](const auto& learning_rate) {
    at::_fused_adamw_(tensors.values, tensors.gradients, tensors.exp_avg, tensors.exp_avg_sq, {}, steps,
                      learning_rate, update.momentum, options.beta2,
                      treatment.decay ? options.weight_decay : 0.0, options.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false, IfDefined(inputs.divisor), IfDefined(inputs.found_inf));
  };
  if (!inputs.learning_rate.defined()) return step(update.learning_rate * rate);
  step(inputs.learning_rate.mul(rate).to(at::kFloat));
}

}  // namespace trainwright
