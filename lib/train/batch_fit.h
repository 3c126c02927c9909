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

/// Of all ranks' memory the smallest; they call together.
/// \param own_bytes 0: not known, and then it is not known of any
/// \throws as World::Agree
int64_t LeastOfRanks(World* world, int64_t own_bytes);

/// \param asked left as it is where it says a micro-batch, how to find one, or how many a step has
/// \param request of the plan
/// \param plan that follows from them, of a language model's loss; of an exact world left as it is
/// \param memory_bytes that training may take where it computes, the same on all ranks; 0: not known
/// \returns the settings, with the micro-batch and accumulation of what fits; as asked where not one sample
///     does
TrainSettings FitBatch(const TrainSettings& asked, const ModelFamilies& families,
                       const MemoryRequest& request, const TrainPlan& plan, int64_t memory_bytes,
                       ChoiceLog* log);

}  // namespace trainwright
