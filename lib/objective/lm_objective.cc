#include "lib/objective/lm_objective.h"

#include <memory>
#include <optional>

#include "lib/base/units.h"
#include "lib/objective/perplexity.h"
#include "lib/spec/built_in_objectives.h"

namespace trainwright {
namespace {

std::unique_ptr<Objective> Make(LossOn loss_on, const ObjectiveOptions& options) {
  return std::make_unique<LmObjective>(
      loss_on, LossTerms{.z_loss = static_cast<float>(options.z_loss),
                         .label_smoothing = static_cast<float>(options.label_smoothing)});
}

}  // namespace

LmObjective::LmObjective(LossOn loss_on, const LossTerms& terms)
    : loss_on_(loss_on),
      weights_(terms),
      terms_({{.name = "loss_nats", .curve = false},
              {.name = "smoothing_nats", .recorded = terms.label_smoothing > 0, .curve = false},
              {.name = "z_loss_nats", .recorded = terms.z_loss > 0, .curve = false}}) {}

SampleStreamOptions LmObjective::Cutting(const std::string& /*loader*/,
                                         const SampleStreamOptions& options) const {
  SampleStreamOptions cutting = options;
  cutting.loss_on = loss_on_;
  return cutting;
}

std::vector<int64_t> LmObjective::Count(const PackedBatch& micro_batch) const {
  return std::vector<int64_t>(terms_.size(), micro_batch.num_labels);
}

void LmObjective::Run(const StepPass& pass, LossSums* sums) const {
  pass.model->set_loss_terms(weights_);
  const StepBatches& batches = *pass.batches;
  std::vector<size_t> with_labels;
  for (size_t i = 0; i < batches.micro_batches.size(); ++i) {
    if (batches.micro_batches[i].num_labels > 0) with_labels.push_back(i);
  }
  for (const size_t i : with_labels) {
    ModelInput input = pass.InputOf(i);
    if (i == with_labels.back()) input.before_last_backward = [&] { pass.TellLastBackward(); };
    const LossSum loss = pass.model->LossAndGradients(input, pass.ScaleOf(batches.denominators[0]));
    if (loss.on_device.defined()) {
      sums->AddOnDevice(loss.on_device);
    } else {
      sums->Add({loss.loss_nats, loss.smoothing_nats, loss.z_loss_nats});
    }
  }
}

Evaluation LmObjective::Evaluate(LanguageModel* model, const ShardSet& set,
                                 const EvaluationOptions& options) const {
  PerplexityMeter meter(model, options.sequence_tokens, options.batch_tokens, options.world);
  meter.set_masked(IsMasked(set.header(), loss_on_));
  meter.set_split(options.split);
  Evaluation evaluation;
  const PerplexitySums& sums = meter.Measure(
      [&] { evaluation.frames_skipped = meter.AddSet(set, options.max_tokens, {}, options.skip_bad); });
  evaluation.loss_nats = sums.mean_loss_nats();
  const std::optional<double> bits_per_byte = sums.bits_per_byte();
  evaluation.measures = {{"perplexity", sums.perplexity(), "perplexity " + FormatFixed(sums.perplexity(), 2)},
                         {"bits_per_byte", bits_per_byte,
                          bits_per_byte ? FormatFixed(*bits_per_byte, 4) + " bits per byte" : ""}};
  evaluation.tokens = sums.tokens;
  evaluation.documents = sums.documents;
  return evaluation;
}

ObjectiveKind LmObjectiveKind() {
  return {.description = LmDescription(),
          .make = [](const ObjectiveOptions& options) { return Make(LossOn::kAll, options); }};
}

ObjectiveKind SftObjectiveKind() {
  return {.description = SftDescription(),
          .make = [](const ObjectiveOptions& options) { return Make(options.loss_on, options); }};
}

}  // namespace trainwright
