/// An update of AdamW with fp32 moments: one call of torch's fused kernel for many parts of the flat buffers.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_runs.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {

/// Of the same parts each, fp32; the gradients may be overwritten.
struct FusedAdamWTensors {
  std::vector<at::Tensor> values, gradients, exp_avg, exp_avg_sq;
};

/// Updates parts that are treated alike.
/// \param options beta2, epsilon and weight decay; beta1 is the update's momentum
/// \param factor of the learning rate, besides the treatment's
void FusedAdamW(const OptimizerOptions& options, const Treatment& treatment, const OptimizerUpdate& update,
                const FusedAdamWTensors& tensors, double factor = 1.0);

}  // namespace trainwright
