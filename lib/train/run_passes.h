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

/// Samples as the only micro-batch of a step, in which no term's denominator is 0.
StepBatches OneMicroBatch(const Objective& objective, std::span<const Sample> samples);

/// Of a step's samples in micro-batches of `batch` of them, the one that holds most tokens, alone; of equal
/// ones the first.
StepBatches LargestMicroBatch(const Objective& objective, std::span<const Sample> samples, int64_t batch);

/// The objective's passes of its only micro-batch, whose loss nobody wants.
/// \param objective outlives the result
MicroBatchPasses PassesOf(const Objective& objective, const StepBatches& batches);

/// Passes of micro-batches of any number of samples: the longest of those that the loaders begin with, each
/// as far as the end of its epoch, 4,096 samples or about two million tokens, again from the longest where
/// more are asked for.
/// \throws what reading the samples throws
std::function<MicroBatchPasses(int64_t samples)> LongestMicroBatches(
    std::shared_ptr<const Objective> objective, const SampleLoaders& loaders);

}  // namespace trainwright
