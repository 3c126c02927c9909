/// The micro-batch of a run on GPUs for which nobody chose one: the usual one, or where a GPU is too small
/// for it one that fits, with about the same samples a step.
#pragma once

#include <cstdint>

#include "lib/dist/world.h"
#include "lib/memory/fitting_step.h"
#include "lib/memory/training_memory.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"
#include "lib/train/choice_log.h"

namespace trainwright {

/// All ranks call together; they get the same.
/// \param asked left as it is where it says a micro-batch, how to find one, or how many a step has
/// \param request of the plan
/// \param plan that follows from them, of a language model's loss; of an exact world left as it is
/// \param memory_bytes that this rank's training may take where it computes; 0: not known
/// \returns the settings, with the micro-batch and accumulation of what fits on every rank; as asked where on
///     one not one sample does, or where one's memory is not known
/// \throws as World::Agree
TrainSettings FitBatch(const TrainSettings& asked, const ModelFamilies& families,
                       const MemoryRequest& request, const TrainPlan& plan, int64_t memory_bytes,
                       World* world, ChoiceLog* log);

}  // namespace trainwright
