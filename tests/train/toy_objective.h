/// An objective that only the tests know: every token is predicted, and those at even positions a second
/// time, as a term with a denominator of its own; on records of its own kind, which it cuts in its own way.
/// It shows what adding one takes: this file, and a line of main that puts its kind into the registry.
#pragma once

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/loading/lm_cutter.h"
#include "lib/objective/objective_registry.h"
#include "lib/objective/perplexity.h"

namespace trainwright::test {

inline constexpr char kToyObjective[] = "toy";
inline constexpr RecordKind kToyRecords{200};
inline constexpr int64_t kToySpanTokens = 6;

/// A sample is a whole segment, cut where it is longer than a sample may be. What the segment says of its
/// place in a record does not count.
class ToyCutter final : public SampleCutter {
 public:
  explicit ToyCutter(int64_t sequence_tokens)
      : text_(RecordKind::kLm, {.sequence_tokens = sequence_tokens}) {}
  void Cut(const Chunk& chunk, SampleWindow* window) const override {
    size_t begin = 0;
    for (const Segment& segment : chunk.segments) {
      Chunk alone;
      alone.segments = {{.tokens = segment.tokens,
                         .flags = static_cast<uint8_t>(segment.flags & kSegmentPadding),
                         .source_bytes = segment.source_bytes}};
      alone.tokens.assign(chunk.tokens.begin() + static_cast<ptrdiff_t>(begin),
                          chunk.tokens.begin() + static_cast<ptrdiff_t>(begin + segment.tokens));
      begin += segment.tokens;
      text_.Cut(alone, window);
    }
  }
  int64_t sequence_tokens() const override { return text_.sequence_tokens(); }
  std::string Identity() const override { return "toy segments\n"; }
  bool HasLabel(const ShardTotals& totals) const override { return text_.HasLabel(totals); }
  std::string NothingToLearn() const override { return text_.NothingToLearn(); }

 private:
  LmCutter text_;
};

class ToyObjective : public Objective {
 public:
  /// \param weight of the second term
  explicit ToyObjective(double weight)
      : weight_(weight), terms_({{.name = "all_nats"}, {.name = "even_nats"}}) {}
  const std::vector<LossTerm>& terms() const override { return terms_; }
  SampleStreamOptions Cutting(const std::string& /*loader*/,
                              const SampleStreamOptions& options) const override {
    SampleStreamOptions cutting = options;
    cutting.shuffle = false;
    return cutting;
  }
  std::unique_ptr<const SampleCutter> MakeCutter(const std::string& /*loader*/, RecordKind records,
                                                 const SampleStreamOptions& options) const override {
    TRAINWRIGHT_CHECK(records == kToyRecords);
    return std::make_unique<ToyCutter>(options.sequence_tokens);
  }
  /// Spans of at most kToySpanTokens.
  PackedBatch Pack(std::span<const Sample> samples) const override {
    PackedBatch packed = Objective::Pack(samples);
    std::vector<int32_t> starts;
    for (int64_t i = 0; i < packed.num_tokens(); ++i) {
      int64_t& position = packed.positions[static_cast<size_t>(i)];
      position %= kToySpanTokens;
      if (position == 0) starts.push_back(static_cast<int32_t>(i));
    }
    starts.push_back(static_cast<int32_t>(packed.num_tokens()));
    packed.span_starts = starts;
    return packed;
  }
  std::vector<int64_t> Count(const PackedBatch& micro_batch) const override {
    const PackedBatch even = EvenOnly(micro_batch);
    return {micro_batch.num_labels, even.num_labels};
  }
  void Run(const StepPass& pass, LossSums* sums) const override {
    const StepBatches& batches = *pass.batches;
    for (size_t i = 0; i < batches.micro_batches.size(); ++i) {
      ModelInput input = pass.InputOf(i);
      // One term's sum as a device has it, the other's as the host.
      const double all_nats =
          pass.model->LossAndGradients(input, pass.ScaleOf(batches.denominators[0])).loss_nats;
      sums->AddOnDevice(at::tensor({all_nats, 0.0}, at::kDouble));
      input.labels_n = ToModelInput(EvenOnly(batches.micro_batches[i])).labels_n;
      GradientScale scale = pass.ScaleOf(batches.denominators[1]);
      scale.factor *= weight_;
      sums->Add({0, weight_ * pass.model->LossAndGradients(input, scale).loss_nats});
    }
  }
  Evaluation Evaluate(LanguageModel* model, const ShardSet& set,
                      const EvaluationOptions& options) const override {
    PerplexityMeter meter(model, kToySpanTokens, options.batch_tokens);
    meter.AddSet(set, options.max_tokens, {});
    const PerplexitySums& sums = meter.Finish();
    return {.loss_nats = sums.mean_loss_nats(),
            .measures = {{"toy_measure", weight_, "toy measure"}},
            .tokens = sums.tokens,
            .documents = sums.documents};
  }

  /// The batch with the labels at even positions alone.
  static PackedBatch EvenOnly(const PackedBatch& batch) {
    PackedBatch even = batch;
    for (size_t i = 0; i < even.labels.size(); ++i) {
      if (even.positions[i] % 2 == 0 || even.labels[i] == kIgnoreLabel) continue;
      even.labels[i] = kIgnoreLabel;
      --even.num_labels;
    }
    return even;
  }

 private:
  double weight_;
  std::vector<LossTerm> terms_;
};

inline constexpr char kTwoLoaderToy[] = "two-loader-toy", kSecondLoader[] = "second";

/// The same with a second loader, which half of a step's samples come from. It reads its records in another
/// order: those of the second set of --data where there are two, else those of the main loader.
class TwoLoaderToy : public ToyObjective {
 public:
  using ToyObjective::ToyObjective;
  std::vector<std::string> Loaders(std::span<const OrderedSet> /*sets*/) const override {
    return {kMainLoader, kSecondLoader};
  }
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const override {
    SampleStreamOptions cutting = ToyObjective::Cutting(loader, options);
    cutting.shuffle = loader == kSecondLoader;
    if (options.sets.size() == 2) cutting.sets = {options.sets[loader == kSecondLoader ? 1 : 0]};
    return cutting;
  }

 private:
  std::vector<Sample> Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const override {
    const int64_t second = samples / 2;
    std::vector<Sample> step = loaders.at(kMainLoader)->NextStep(samples - second, drop_last);
    for (Sample& sample : loaders.at(kSecondLoader)->NextStep(second, drop_last)) {
      step.push_back(std::move(sample));
    }
    return step;
  }
};

inline ObjectiveKind TwoLoaderToyKind() {
  return {.description = {.name = kTwoLoaderToy, .records = {{.kind = kToyRecords}}},
          .make = [](const ObjectiveOptions&) { return std::make_unique<TwoLoaderToy>(0.25); }};
}

inline ObjectiveKind ToyObjectiveKind() {
  return {.description = {.name = kToyObjective,
                          .records = {{.kind = kToyRecords}},
                          .own = {{.name = "even_weight", .initial = 0.25}}},
          .make = [](const ObjectiveOptions& options) {
            return std::make_unique<ToyObjective>(options.own.at("even_weight").number());
          }};
}

}  // namespace trainwright::test
