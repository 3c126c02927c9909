/// DeepSpeed's train_batch_size: the samples of a step on all ranks, which the file of `train --deepspeed`
/// says before the number of ranks is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// Makes a step hold train_batch_size samples, as DeepSpeed does: of --batch and --accum, what nobody said
/// follows from the other; where neither is said, --accum is 1. What only a preset said gives way.
/// \param train_batch_size of OptionsOfFile::others: a whole number of at least 1
/// \param options of the process; what follows is reported among them
/// \returns a notice, when the user said otherwise than the file and train_batch_size is ignored;
///     else empty
/// \throws Error{kUsage} when it does not come out even, or the file contradicts itself
std::string TakeTrainBatchSize(const OptionValue& train_batch_size, int64_t ranks,
                               std::vector<OptionValue>* options, TrainSettings* settings);

}  // namespace trainwright
