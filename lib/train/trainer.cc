#include "lib/train/trainer.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/eval/perplexity.h"
#include "lib/optim/clip.h"

namespace trainwright {
namespace {

[[noreturn]] void ThrowNonFinite(const char* what, double value, int64_t step, const std::string& extra) {
  throw Error(ErrorCode::kNonFinite, "training", std::string(what) + " is " + FormatFixed(value, 0) + extra,
              "step " + std::to_string(step),
              "lower --lr, lengthen --warmup, or resume from the last checkpoint with other settings");
}

}  // namespace

Trainer::Trainer(LanguageModel* model, SampleStream* stream, const TrainPlan& plan, at::Device device)
    : model_(model),
      stream_(stream),
      plan_(plan),
      device_(device),
      optimizer_(&model->parameters(), plan.optimizer),
      scaler_(plan.precision == Precision::kFp16) {
  model->set_loss_terms(plan.loss_terms());
}

StepReport Trainer::Step() {
  const auto start = std::chrono::steady_clock::now();
  const double wait_before_s = stream_->loader_counts().wait_s;
  StepReport report;
  report.step = step_ + 1;
  report.lr = LearningRate(plan_.schedule, step_);
  report.loss_scale = scaler_.scale();

  std::vector<PackedBatch> micro_batches(static_cast<size_t>(plan_.accum));
  const std::vector<Sample> samples = stream_->NextStep(plan_.samples_per_step(), plan_.drop_last);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].AppendTo(&micro_batches[i / static_cast<size_t>(plan_.batch)]);
  }
  for (const PackedBatch& micro_batch : micro_batches) {
    report.tokens += micro_batch.num_tokens();
    report.labels += micro_batch.num_labels;
  }
  report.data_wait_s = stream_->loader_counts().wait_s - wait_before_s;

  model_->parameters().ZeroGradients();
  LossSum sum;
  for (const PackedBatch& micro_batch : micro_batches) {
    if (micro_batch.num_labels == 0) continue;
    const double gradient_scale = report.loss_scale / static_cast<double>(report.labels);
    const LossSum loss = model_->LossAndGradients(ToModelInput(micro_batch), gradient_scale);
    sum.loss_nats += loss.loss_nats;
    sum.smoothing_nats += loss.smoothing_nats;
    sum.z_loss_nats += loss.z_loss_nats;
  }

  if (report.labels == 0) {
    report.skipped = true;
  } else {
    const auto labels = static_cast<double>(report.labels);
    report.loss_nats = sum.loss_nats / labels;
    report.smoothing_nats = sum.smoothing_nats / labels;
    report.z_loss_nats = sum.z_loss_nats / labels;
    const ClipResult clipped =
        UnscaleAndClip(model_->parameters().gradients(), report.loss_scale, plan_.clip);
    report.grad_norm = clipped.norm;
    const bool finite = std::isfinite(report.loss_nats) && clipped.finite;
    if (!finite && (!scaler_.enabled() || report.loss_scale <= 1)) {
      const bool loss_is_bad = !std::isfinite(report.loss_nats);
      ThrowNonFinite(loss_is_bad ? "loss" : "gradient norm",
                     loss_is_bad ? report.loss_nats : report.grad_norm, report.step,
                     scaler_.enabled() ? " even at loss scale 1" : "");
    }
    report.skipped = !scaler_.Update(finite);
    if (!report.skipped) {
      optimizer_.Step(report.lr, CycledBeta1(plan_.schedule, plan_.optimizer.beta1, step_));
    }
  }

  ++step_;
  tokens_seen_ += report.tokens;
  labels_seen_ += report.labels;
  report.step_time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

TrainerState Trainer::state() {
  return {.step = step_,
          .updates = optimizer_.steps(),
          .tokens_seen = tokens_seen_,
          .labels_seen = labels_seen_,
          .cursor = stream_->cursor(),
          .scaler = scaler_.state(),
          .exp_avg = optimizer_.exp_avg(),
          .exp_avg_sq = optimizer_.exp_avg_sq()};
}

void Trainer::Restore(const TrainerState& state) {
  if (state.exp_avg.numel() != optimizer_.exp_avg().numel() ||
      state.exp_avg_sq.numel() != optimizer_.exp_avg_sq().numel()) {
    throw Error(ErrorCode::kBadInput, "training state", "its moments belong to a model of another size");
  }
  stream_->Seek(state.cursor);
  optimizer_.exp_avg().copy_(state.exp_avg);
  optimizer_.exp_avg_sq().copy_(state.exp_avg_sq);
  optimizer_.set_steps(state.updates);
  scaler_.set_state(state.scaler);
  step_ = state.step;
  tokens_seen_ = state.tokens_seen;
  labels_seen_ = state.labels_seen;
}

}  // namespace trainwright
