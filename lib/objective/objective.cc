#include "lib/objective/objective.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/error.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/objective/model_input.h"
#include "lib/spec/model_flops.h"

namespace trainwright {

namespace {

/// Where samples begin in their micro-batch.
/// \param first number of the first of them in the step
std::vector<DropoutPosition::Sample> PlacesOf(std::span<const Sample> samples, int64_t first,
                                              const PackedBatch& micro_batch) {
  std::vector<DropoutPosition::Sample> places;
  int64_t index = first, row = 0;
  for (const Sample& sample : samples) {
    places.push_back({.index = index++, .row = row});
    row += static_cast<int64_t>(sample.tokens());
  }
  if (row != micro_batch.num_tokens()) places.resize(1);
  return places;
}

}  // namespace

bool StepBatches::empty() const {
  return std::all_of(denominators.begin(), denominators.end(), [](int64_t count) { return count == 0; });
}

TextCounts& TextCounts::operator+=(const TextCounts& other) {
  queries += other.queries;
  passages += other.passages;
  generative_rows += other.generative_rows;
  return *this;
}

StepWork& StepWork::operator+=(const StepWork& other) {
  tokens += other.tokens;
  labels += other.labels;
  attention_pairs += other.attention_pairs;
  tokens_if_padded += other.tokens_if_padded;
  texts += other.texts;
  return *this;
}

GradientScale StepPass::ScaleOf(int64_t denominator) const {
  return {loss_scale / static_cast<double>(denominator), loss_scale_on_device};
}

ModelInput StepPass::InputOf(size_t micro_batch) const {
  ModelInput input = ToModelInput(batches->micro_batches[micro_batch]);
  input.pin = pin;
  DropoutPosition position = {.seed = seed, .step = step, .samples = {{}}};
  if (!batches->places.empty()) position.samples = batches->places[micro_batch];
  input.dropout = std::move(position);
  return input;
}

std::unique_ptr<const SampleCutter> Objective::MakeCutter(const std::string& /*loader*/, RecordKind records,
                                                          const SampleStreamOptions& options) const {
  return std::make_unique<LmCutter>(records, options.cutting());
}

OpenedLoaders Objective::OpenLoaders(const ShardSet* set, const SampleStreamOptions& options,
                                     const LoaderOptions& loader) const {
  const std::vector<std::string> names = Loaders(options.sets.empty() ? OrderedSetsOf(*set) : options.sets);
  LoaderOptions own = loader;
  own.cache_bytes /= static_cast<int64_t>(names.size());
  OpenedLoaders opened;
  for (const std::string& name : names) {
    const SampleStreamOptions cutting = Cutting(name, options);
    opened[name] = std::make_unique<SampleLoader>(set, MakeCutter(name, set->header().record_kind, cutting),
                                                  cutting.order(), own);
  }
  return opened;
}

std::vector<Sample> Objective::NextStep(const SampleLoaders& loaders, int64_t samples, bool drop_last) const {
  std::vector<std::pair<SampleLoader*, SampleCursor>> begin;
  for (const auto& [name, loader] : loaders) begin.emplace_back(loader, loader->cursor());
  try {
    std::vector<Sample> step = Draw(loaders, samples, drop_last);
    TRAINWRIGHT_CHECK(step.size() == static_cast<size_t>(samples));
    return step;
  } catch (...) {
    for (const auto& [loader, cursor] : begin) loader->Seek(cursor);
    throw;
  }
}

std::vector<Sample> Objective::Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const {
  return loaders.at(kMainLoader)->NextStep(samples, drop_last);
}

PackedBatch Objective::Pack(std::span<const Sample> samples) const {
  PackedBatch micro_batch;
  for (const Sample& sample : samples) sample.AppendTo(&micro_batch);
  return micro_batch;
}

StepWork Objective::WorkOf(const PackedBatch& micro_batch, const ModelConfig& model) const {
  return {.tokens = micro_batch.num_tokens(),
          .labels = micro_batch.num_labels,
          .attention_pairs = CountAttentionPairs(micro_batch.span_starts, model)};
}

PackedBatch Objective::LongestBatch(int64_t samples, int64_t span_tokens) const {
  PackedBatch micro_batch;
  const std::vector<uint32_t> tokens(static_cast<size_t>(span_tokens), 0);
  for (int64_t i = 0; i < samples; ++i) {
    micro_batch.AppendSpan(std::span<const uint32_t>(tokens), /*next_token=*/0);
  }
  return micro_batch;
}

double Objective::Loss(const std::vector<double>& means) const {
  return std::accumulate(means.begin(), means.end(), 0.0);
}

StepBatches Objective::Cut(std::span<const Sample> samples, const MicroBatchRule& rule, int64_t first) const {
  StepBatches cut;
  cut.denominators.resize(terms().size());
  for (const std::span<const Sample> taken : DivideSamples(samples, rule)) {
    cut.micro_batches.push_back(Pack(taken));
    cut.places.push_back(PlacesOf(taken, first, cut.micro_batches.back()));
    first += static_cast<int64_t>(taken.size());
    const std::vector<int64_t> counts = Count(cut.micro_batches.back());
    for (size_t i = 0; i < counts.size(); ++i) cut.denominators[i] += counts[i];
  }
  return cut;
}

}  // namespace trainwright
