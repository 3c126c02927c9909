/// What micro-batches of a run do, for what is measured or told of them apart from its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lib/loading/sample_loaders.h"
#include "lib/memory/training_memory.h"
#include "lib/objective/objective.h"

namespace trainwright {

/// Samples as a micro-batch of a step, in which no term's denominator is 0.
/// \param of_step how many such micro-batches a rank has in a step
StepBatches OneMicroBatch(const Objective& objective, std::span<const Sample> samples, int64_t of_step = 1);

/// The same of what is laid out already.
StepBatches StepBatchesOf(const Objective& objective, PackedBatch micro_batch, int64_t of_step);

/// Of a step's micro-batches the one that holds most tokens; of equal ones the first.
/// \throws as DivideSamples
StepBatches LargestMicroBatch(const Objective& objective, std::span<const Sample> samples,
                              const MicroBatchRule& rule, int64_t of_step = 1);

/// The objective's passes of one micro-batch, whose loss nobody wants; without Objective::Begin.
/// \param objective outlives the result
MicroBatchPasses PassesOf(const Objective& objective, const StepBatches& batches);

/// Passes of micro-batches of any number of samples: the longest of those that the loaders begin with, each
/// as far as the end of its epoch, 4,096 samples or about two million tokens, again from the longest where
/// more are asked for.
/// \param step_samples of a rank in a step; 0: as many as a micro-batch has
/// \throws what reading the samples throws
std::function<MicroBatchPasses(int64_t samples)> LongestMicroBatches(
    std::shared_ptr<const Objective> objective, const SampleLoaders& loaders, int64_t step_samples = 0);

}  // namespace trainwright
