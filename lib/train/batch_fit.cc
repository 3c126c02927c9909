#include "lib/train/batch_fit.h"

#include <string>

#include "lib/base/units.h"
#include "lib/memory/fitting_step.h"

namespace trainwright {
namespace {

bool IsLeftOpen(const TrainSettings& asked, const TrainPlan& plan) {
  const bool says =
      asked.batch || asked.accum || asked.find_batch || asked.max_tokens_per_batch.value_or(0) > 0;
  return !says && plan.exact_world == 0;
}

}  // namespace

int64_t LeastOfRanks(World* world, int64_t own_bytes) {
  return -world->Agree({-own_bytes})[0];
}

TrainSettings FitBatch(const TrainSettings& asked, const ModelFamilies& families,
                       const MemoryRequest& request, const TrainPlan& plan, int64_t memory_bytes,
                       ChoiceLog* log) {
  if (memory_bytes == 0 || !IsLeftOpen(asked, plan)) return asked;
  const auto bytes_of = [&](int64_t samples) {
    TrainPlan divided = plan;
    divided.accum = DivideStep(plan.samples_per_rank(), samples).accum;
    MemoryRequest own = request;
    own.gives_gradients_away = divided.gives_gradients_away();
    return TrainingMemory(families, own, EqualSamples(samples, plan.sequence_tokens)).of_model();
  };
  const int64_t fits = HalveToFit(plan.batch, memory_bytes, bytes_of);
  if (fits == 0 || fits == plan.batch) return asked;
  TrainSettings settings = asked;
  const DividedStep step = DivideStep(plan.samples_per_rank(), fits);
  settings.batch = step.batch;
  settings.accum = step.accum;
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  log->Announce({{"batch",
                  std::to_string(plan.batch) + " samples would take about " + bytes(bytes_of(plan.batch)) +
                      " of " + bytes(memory_bytes) + "; --accum " + std::to_string(step.accum) +
                      " makes a step of " + std::to_string(step.accum * step.batch * plan.ranks) + " samples",
                  "batch " + std::to_string(step.batch)}});
  return settings;
}

}  // namespace trainwright
