#include "lib/train/batch_fit.h"

#include <algorithm>
#include <string>

#include "lib/base/units.h"

namespace trainwright {
namespace {

bool IsLeftOpen(const TrainSettings& asked, const TrainPlan& plan) {
  const bool says =
      asked.batch || asked.accum || asked.find_batch || asked.max_tokens_per_batch.value_or(0) > 0;
  return !says && plan.ranks == 1 && plan.exact_world == 0;
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
                       ChoiceLog* log) {
  if (memory_bytes == 0 || !IsLeftOpen(asked, plan)) return asked;
  const auto bytes_of = [&](int64_t samples) {
    return TrainingMemory(families, request, EqualSamples(samples, plan.sequence_tokens)).of_model();
  };
  const int64_t usual_bytes = bytes_of(plan.batch);
  if (usual_bytes <= memory_bytes) return asked;
  int64_t fits = plan.batch / 2;
  while (fits > 0 && bytes_of(fits) > memory_bytes) fits /= 2;
  if (fits == 0) return asked;
  TrainSettings settings = asked;
  settings.accum = DivideUp(plan.samples_per_step(), fits);
  settings.batch = DivideUp(plan.samples_per_step(), *settings.accum);
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  log->Announce({{"batch",
                  std::to_string(plan.batch) + " samples would take about " + bytes(usual_bytes) + " of " +
                      bytes(memory_bytes) + "; --accum " + std::to_string(*settings.accum) +
                      " makes a step of " + std::to_string(*settings.accum * *settings.batch) + " samples",
                  "batch " + std::to_string(*settings.batch)}});
  return settings;
}

}  // namespace trainwright
