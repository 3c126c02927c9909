#include "lib/train/run_passes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/device/accelerator.h"

namespace trainwright {
namespace {

constexpr size_t kMostSamplesRead = 4096;
constexpr int64_t kMostTokensRead = int64_t{1} << 21;

class NoLossSums final : public LossSums {
 public:
  void Add(const std::vector<double>&) override {}
  void AddOnDevice(const at::Tensor&) override {}
};

/// Those that the loaders begin with, the longest first.
std::vector<Sample> LongestSamples(const SampleLoaders& loaders) {
  std::vector<Sample> samples;
  for (const auto& [name, loader] : loaders) {
    const uint64_t epoch = loader->cursor().epoch;
    const size_t most_samples = samples.size() + kMostSamplesRead;
    for (int64_t tokens = 0; samples.size() < most_samples && tokens < kMostTokensRead;) {
      samples.push_back(loader->Next());
      tokens += samples.back().tokens();
      if (loader->cursor().epoch != epoch) break;
    }
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.tokens() > b.tokens(); });
  return samples;
}

}  // namespace

StepBatches OneMicroBatch(const Objective& objective, std::span<const Sample> samples, int64_t of_step) {
  StepBatches batches = objective.Cut(samples, {.samples = static_cast<int64_t>(samples.size())});
  batches.of_step = static_cast<size_t>(of_step);
  for (int64_t& denominator : batches.denominators) denominator = std::max<int64_t>(1, denominator);
  return batches;
}

StepBatches StepBatchesOf(const Objective& objective, PackedBatch micro_batch, int64_t of_step) {
  StepBatches batches = {.micro_batches = {std::move(micro_batch)},
                         .places = {},
                         .denominators = {},
                         .of_step = static_cast<size_t>(of_step)};
  batches.denominators = objective.Count(batches.micro_batches.front());
  for (int64_t& denominator : batches.denominators) denominator = std::max<int64_t>(1, denominator);
  return batches;
}

StepBatches LargestMicroBatch(const Objective& objective, std::span<const Sample> samples,
                              const MicroBatchRule& rule, int64_t of_step) {
  StepBatches largest;
  for (const std::span<const Sample> taken : DivideSamples(samples, rule)) {
    StepBatches own = OneMicroBatch(objective, taken, of_step);
    if (largest.micro_batches.empty() ||
        own.micro_batches.front().num_tokens() > largest.micro_batches.front().num_tokens()) {
      largest = std::move(own);
    }
  }
  return largest;
}

MicroBatchPasses PassesOf(const Objective& objective, const StepBatches& batches) {
  const auto run = [&objective, batches](LanguageModel* model) {
    NoLossSums sums;
    objective.Run(
        {.model = model, .batches = &batches, .pin = IsAccelerator(model->parameters().values().device())},
        &sums);
  };
  return {.run = run, .span_starts = batches.micro_batches.front().span_starts};
}

std::function<MicroBatchPasses(int64_t)> LongestMicroBatches(std::shared_ptr<const Objective> objective,
                                                             const SampleLoaders& loaders,
                                                             int64_t step_samples) {
  std::vector<Sample> longest = objective->Join(LongestSamples(loaders));
  return [objective = std::move(objective), samples = std::move(longest), step_samples](int64_t count) {
    std::vector<Sample> taken;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) taken.push_back(samples[i % samples.size()]);
    const int64_t of_step = std::max<int64_t>(1, step_samples / count);
    return PassesOf(*objective, OneMicroBatch(*objective, taken, of_step));
  };
}

}  // namespace trainwright
