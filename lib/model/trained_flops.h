/// Operations of a training step of a model of which some parameters are frozen by their names
/// (lib/spec/parameter_rules.h).
#pragma once

#include "lib/model/language_model.h"
#include "lib/spec/model_flops.h"

namespace trainwright {

/// CountStepFlops without what the backward pass leaves out: the gradients of frozen matrices, and all of the
/// layers below the lowest one with a parameter that is trained, where nothing below them is. Of a model that
/// mixes tokens by a recurrence, the latter are the layers' share of the whole.
/// \param tuning the one that the model was made with
StepFlops CountTrainedFlops(LanguageModel* model, const FineTuning& tuning);

}  // namespace trainwright
