/// The kernels that compute a run's GEMMs on a GPU: chosen before its first step, and read back by whoever
/// continues with it (lib/spec/product_choices.h).
#pragma once

#include "lib/dist/world.h"
#include "lib/model/language_model.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/train/resolved_run.h"

namespace trainwright {

/// Gives the model what the run has chosen. Where that is nothing and no step was taken, tries the kernels
/// on one micro-batch of the run's size, forward and backward, and stores what it chose; all ranks take the
/// writer's choices. Nothing is tried under --deterministic and --exact-world, where no clock may decide, nor
/// with --auto-oom, which would not see that memory ran out, of models with adapters, nor where gradients are
/// sharded or off-loaded: then, for shapes that no such micro-batch has, and for a run that went on without
/// choices, the first candidates compute. By all ranks together, after the model has its options and before
/// the first step. Nothing on a CPU.
/// \param directory the writer's; null on the other ranks
/// \param steps_taken by the run
/// \param run has the choices of before, and gets those that are made, for its states
/// \throws Error{kIo} where they cannot be stored in run.json
void ChooseProducts(const TrainSettings& settings, int64_t steps_taken, World* world,
                    const RunDirectory* directory, LanguageModel* model, ResolvedRun* run);

}  // namespace trainwright
