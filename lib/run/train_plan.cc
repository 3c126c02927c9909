#include "lib/run/train_plan.h"

namespace trainwright {

SampleStreamOptions TrainPlan::stream_options() const {
  return {.sequence_tokens = sequence_tokens,
          .seed = seed,
          .window_chunks = window_chunks,
          .block_chunks = block_chunks,
          .shuffle = true,
          .loss_on = labels_on(),
          .split = eval_split};
}

}  // namespace trainwright
