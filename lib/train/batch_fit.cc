#include "lib/train/batch_fit.h"

#include <algorithm>
#include <string>

#include "lib/base/units.h"

namespace trainwright {
namespace {

/// Of all ranks the smallest.
int64_t AgreeOnSmallest(World* world, int64_t own) {
  return -world->Agree({-own})[0];
}

bool IsLeftOpen(const TrainSettings& asked, const TrainPlan& plan) {
  const bool says =
      asked.batch || asked.accum || asked.find_batch || asked.max_tokens_per_batch.value_or(0) > 0;
  return !says && plan.exact_world == 0;
}

int64_t DivideUp(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

}  // namespace

int64_t MemoryToFit(int64_t whole_bytes, int64_t state_bytes) {
  constexpr double kShare = 0.85;
  constexpr int64_t kHeadsPart = 8;
  const auto memory_bytes = static_cast<int64_t>(kShare * static_cast<double>(whole_bytes));
  return memory_bytes - std::max<int64_t>(0, memory_bytes - state_bytes) / kHeadsPart;
}

TrainSettings FitBatch(const TrainSettings& asked, const ModelFamilies& families,
                       const MemoryRequest& request, const TrainPlan& plan, int64_t memory_bytes,
                       World* world, ChoiceLog* log) {
  if (!IsLeftOpen(asked, plan)) return asked;
  const int64_t least_bytes = AgreeOnSmallest(world, memory_bytes);
  if (least_bytes == 0) return asked;
  const auto bytes_of = [&](int64_t samples) {
    TrainPlan divided = plan;
    divided.accum = DivideUp(plan.samples_per_rank(), samples);
    MemoryRequest own = request;
    own.gives_gradients_away = divided.gives_gradients_away();
    return TrainingMemory(families, own, EqualSamples(samples, plan.sequence_tokens)).of_model();
  };
  const int64_t usual_bytes = bytes_of(plan.batch);
  int64_t own_fits = plan.batch;
  for (int64_t bytes = usual_bytes; bytes > least_bytes; bytes = bytes_of(own_fits)) {
    own_fits /= 2;
    if (own_fits == 0) break;
  }
  // GPUs of other kinds may have kernels that take more of as much memory.
  const int64_t fits = AgreeOnSmallest(world, own_fits);
  if (fits == 0 || fits == plan.batch) return asked;
  TrainSettings settings = asked;
  settings.accum = DivideUp(plan.samples_per_rank(), fits);
  settings.batch = DivideUp(plan.samples_per_rank(), *settings.accum);
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  log->Announce(
      {{"batch",
        std::to_string(plan.batch) + " samples would take about " + bytes(usual_bytes) + " of " +
            bytes(least_bytes) + "; --accum " + std::to_string(*settings.accum) + " makes a step of " +
            std::to_string(*settings.accum * *settings.batch * plan.ranks) + " samples",
        "batch " + std::to_string(*settings.batch)}});
  return settings;
}

}  // namespace trainwright
