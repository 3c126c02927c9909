#include "lib/objective/objective.h"

#include <algorithm>
#include <numeric>

#include "lib/objective/model_input.h"

namespace trainwright {

bool StepBatches::empty() const {
  return std::all_of(denominators.begin(), denominators.end(), [](int64_t count) { return count == 0; });
}

GradientScale StepPass::ScaleOf(int64_t denominator) const {
  return {loss_scale / static_cast<double>(denominator), loss_scale_on_device};
}

ModelInput StepPass::InputOf(size_t micro_batch) const {
  int64_t tokens_before = 0;
  for (size_t i = 0; i < micro_batch; ++i) tokens_before += batches->micro_batches[i].num_tokens();
  ModelInput input = ToModelInput(batches->micro_batches[micro_batch]);
  input.pin = pin;
  input.dropout = DropoutPosition{seed, step, tokens_before};
  return input;
}

PackedBatch Objective::Pack(std::span<const Sample> samples) const {
  PackedBatch micro_batch;
  for (const Sample& sample : samples) sample.AppendTo(&micro_batch);
  return micro_batch;
}

double Objective::Loss(const std::vector<double>& means) const {
  return std::accumulate(means.begin(), means.end(), 0.0);
}

StepBatches Objective::Cut(std::span<const Sample> samples, int64_t batch) const {
  StepBatches cut;
  cut.denominators.resize(terms().size());
  const auto size = static_cast<size_t>(batch);
  for (size_t begin = 0; begin < samples.size(); begin += size) {
    cut.micro_batches.push_back(Pack(samples.subspan(begin, std::min(size, samples.size() - begin))));
    const std::vector<int64_t> counts = Count(cut.micro_batches.back());
    for (size_t i = 0; i < counts.size(); ++i) cut.denominators[i] += counts[i];
  }
  return cut;
}

}  // namespace trainwright
