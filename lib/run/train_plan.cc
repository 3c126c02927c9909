#include "lib/run/train_plan.h"

#include <algorithm>

#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {

namespace {

template <typename Description>
bool TakesOf(const std::vector<Description>& all, const std::string& name, const std::string& stored) {
  return std::any_of(all.begin(), all.end(), [&](const Description& description) {
    return description.name == name && description.takes.contains(stored);
  });
}

}  // namespace

bool TrainPlan::Takes(const std::string& stored) const {
  return takes.contains(stored) || TakesOf(BuiltInObjectiveDescriptions(), objective, stored) ||
         TakesOf(BuiltInOptimizerDescriptions(), optimizer.name, stored);
}

SampleStreamOptions TrainPlan::stream_options() const {
  return {.sequence_tokens = sequence_tokens,
          .seed = seed,
          .window_chunks = window_chunks,
          .block_chunks = samples.block_chunks,
          .shuffle = true,
          .group_by_length = samples.group_by_length,
          .packing = samples.packing,
          .loss_on = labels_on(),
          .split = eval_split,
          .step_samples = samples_per_step()};
}

}  // namespace trainwright
