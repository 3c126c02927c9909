/// The choices of a run that its device decides: see DeviceChoices. Those of GEMM kernels, which need a
/// model, are product_choice.h's.
#pragma once

#include "lib/train/resolved_run.h"

namespace trainwright {

/// Decides in what slices the head is computed, by the memory that is free beside what the model will hold,
/// where nothing is decided yet. To be called before a model is made, by all ranks together: those of all
/// follow the least memory. Nothing on a CPU.
/// \param run resolved as far as its plan
void ChooseHeadSlices(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                      ResolvedRun* run);

/// Decides what attention `auto` stands for where spans have one length, by timing one layer of the run's
/// micro-batches, where the settings leave it open and the device has a choice. To be called before a model
/// is made, by all ranks together: the writer times for all.
void ChooseAttention(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                     ResolvedRun* run);

/// Continues with what a run had decided, as far as its device still asks for it and the settings do not say
/// otherwise.
void TakeStoredChoices(const TrainSettings& settings, const DeviceChoices& stored, ResolvedRun* run);

}  // namespace trainwright
