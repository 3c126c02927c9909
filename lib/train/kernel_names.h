/// By which kernels a run computes, for the lines that it begins with.
#pragma once

#include <string>

#include "lib/run/train_plan.h"
#include "lib/spec/model_config.h"
#include "lib/train/compute_choice.h"

namespace trainwright {

/// "attention our own for short spans, torch's flash beyond; norms, activations and positions one pass each;
/// ...", of a recurrence "scan fused; norms, ...".
std::string KernelNames(const ModelConfig& model, const TrainPlan& plan, const ComputeChoice& compute);

}  // namespace trainwright
