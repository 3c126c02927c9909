#include "lib/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
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

at::Tensor& TrainerState::optimizer_state(const std::string& name) {
  const auto found = std::find_if(optimizer.begin(), optimizer.end(),
                                  [&](const OptimizerState& state) { return state.name == name; });
  TRAINWRIGHT_CHECK(found != optimizer.end());
  return found->value;
}

Trainer::Trainer(TrainerParts parts, const TrainPlan& plan, at::Device device, bool defer)
    : model_(parts.model),
      stream_(parts.stream),
      plan_(plan),
      device_(device),
      optimizer_(std::move(parts.optimizer)),
      scaler_(plan.precision == Precision::kFp16) {
  model_->set_loss_terms(plan.loss_terms());
  if (!defer && device.is_cpu()) return;
  device_step_.emplace(device);
  device_step_->Set(scaler_.state(), 0);
}

StepReport Trainer::Step(bool read) {
  const auto start = std::chrono::steady_clock::now();
  const double wait_before_s = stream_->loader_counts().wait_s;
  StepReport report;
  report.step = step_ + 1;
  report.lr = LearningRate(plan_.schedule, step_);
  report.loss_scale = scaler_.scale();

  std::vector<PackedBatch> micro_batches(static_cast<size_t>(plan_.accum));
  if (samples_.empty()) samples_ = stream_->NextStep(plan_.samples_per_step(), plan_.drop_last);
  if (const size_t sources = stream_->order().sets().size(); sources > 1)
    report.source_tokens.resize(sources);
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (!report.source_tokens.empty()) report.source_tokens[samples_[i].set()] += samples_[i].tokens();
    samples_[i].AppendTo(&micro_batches[i / static_cast<size_t>(plan_.batch)]);
  }
  for (const PackedBatch& micro_batch : micro_batches) {
    report.tokens += micro_batch.num_tokens();
    report.labels += micro_batch.num_labels;
    report.attention_pairs += CountAttentionPairs(micro_batch.span_starts, model_->config());
  }
  report.data_wait_s = stream_->loader_counts().wait_s - wait_before_s;

  model_->parameters().ZeroGradients();
  LossSum sum;
  int64_t tokens_before = 0;
  for (const PackedBatch& micro_batch : micro_batches) {
    const DropoutPosition position{plan_.seed, report.step, tokens_before};
    tokens_before += micro_batch.num_tokens();
    if (micro_batch.num_labels == 0) continue;
    const GradientScale scale = device_step_ ? device_step_->Scale(report.labels)
                                             : report.loss_scale / static_cast<double>(report.labels);
    ModelInput input = ToModelInput(micro_batch);
    input.pin = pin_;
    input.dropout = position;
    const LossSum loss = model_->LossAndGradients(input, scale);
    if (device_step_) {
      device_step_->AddLoss(loss);
      continue;
    }
    sum.loss_nats += loss.loss_nats;
    sum.smoothing_nats += loss.smoothing_nats;
    sum.z_loss_nats += loss.z_loss_nats;
  }

  if (report.labels == 0) {
    report.skipped = true;
  } else if (device_step_) {
    device_step_->Finish(report.step, report.labels, plan_.clip, scaler_.enabled(), report.lr,
                         CycledBeta1(plan_.schedule, plan_.optimizer.beta1, step_), optimizer_.get());
    if (read) ReadDevice();
    report.read = read;
    report.loss_nats = last_read_.loss_nats;
    report.smoothing_nats = last_read_.smoothing_nats;
    report.z_loss_nats = last_read_.z_loss_nats;
    report.grad_norm = last_read_.grad_norm;
    report.loss_scale = last_read_.loss_scale;
    report.skipped = last_read_.skipped;
  } else {
    const auto labels = static_cast<double>(report.labels);
    report.loss_nats = sum.loss_nats / labels;
    report.smoothing_nats = sum.smoothing_nats / labels;
    report.z_loss_nats = sum.z_loss_nats / labels;
    const ClipResult clipped = DecideClip(&model_->parameters(), report.loss_scale, plan_.clip);
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
      optimizer_->Step(report.lr, CycledBeta1(plan_.schedule, plan_.optimizer.beta1, step_), clipped.factor);
    }
  }

  ++step_;
  samples_.clear();
  tokens_seen_ += report.tokens;
  labels_seen_ += report.labels;
  report.host_time_s = SecondsSince(start);
  unread_time_s_ += report.host_time_s;
  ++unread_steps_;
  report.step_time_s = unread_time_s_ / static_cast<double>(unread_steps_);
  if (report.read) unread_time_s_ = 0, unread_steps_ = 0;
  return report;
}

bool Trainer::HalveMicroBatches() {
  if (plan_.batch == 1) return false;
  const int64_t samples = plan_.samples_per_step();
  int64_t batch = plan_.batch / 2;
  while (samples % batch != 0) --batch;
  plan_.batch = batch;
  plan_.accum = samples / batch;
  model_->ReleaseActivations();
  if (device_step_) {  // it holds losses of the step that failed
    const StepState state = device_step_->Read(&reader_);
    device_step_->Set({.scale = state.loss_scale,
                       .good_steps = static_cast<int64_t>(state.good_steps),
                       .skipped_steps = static_cast<int64_t>(state.skipped_steps)},
                      static_cast<int64_t>(state.updates));
  }
  return true;
}

void Trainer::ReadDevice() {
  const StepState state = device_step_->Read(&reader_);
  scaler_.set_state({.scale = state.loss_scale,
                     .good_steps = static_cast<int64_t>(state.good_steps),
                     .skipped_steps = static_cast<int64_t>(state.skipped_steps)});
  optimizer_->set_steps(static_cast<int64_t>(state.updates));
  last_read_.loss_nats = state.last_loss_nats / state.labels;
  last_read_.smoothing_nats = state.last_smoothing_nats / state.labels;
  last_read_.z_loss_nats = state.last_z_loss_nats / state.labels;
  last_read_.grad_norm = state.grad_norm;
  last_read_.loss_scale = state.last_loss_scale;
  last_read_.skipped = state.skipped != 0;
  if (state.bad_step == 0) return;
  const bool loss_is_bad = !std::isfinite(state.bad_loss_nats);
  ThrowNonFinite(loss_is_bad ? "loss" : "gradient norm",
                 loss_is_bad ? state.bad_loss_nats : state.bad_grad_norm,
                 static_cast<int64_t>(state.bad_step), scaler_.enabled() ? " even at loss scale 1" : "");
}

TrainerState Trainer::state() {
  if (device_step_) ReadDevice();
  return {.step = step_,
          .updates = optimizer_->steps(),
          .tokens_seen = tokens_seen_,
          .labels_seen = labels_seen_,
          .cursor = stream_->cursor(),
          .bad_chunks = stream_->bad_chunks(),
          .scaler = scaler_.state(),
          .optimizer = optimizer_->States()};
}

void Trainer::RestoreOptimizer(const TrainerState& state) {
  const std::vector<OptimizerState> live = optimizer_->States();
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kBadInput, state.origin, problem);
  };
  std::vector<const at::Tensor*> stored;
  for (const OptimizerState& own : live) {
    const auto found = std::find_if(state.optimizer.begin(), state.optimizer.end(),
                                    [&](const OptimizerState& other) { return other.name == own.name; });
    if (found == state.optimizer.end() || found->value.scalar_type() != own.value.scalar_type()) {
      refuse(std::string("has no tensor '") + own.name + "' of type " +
             c10::toString(own.value.scalar_type()));
    }
    if (found->value.sizes() != own.value.sizes()) {
      refuse("its optimizer's state '" + own.name + "' belongs to a model of another size");
    }
    stored.push_back(&found->value);
  }
  if (state.optimizer.size() != live.size()) refuse("holds states of another optimizer");
  for (size_t i = 0; i < live.size(); ++i) live[i].value.copy_(*stored[i]);
  optimizer_->set_steps(state.updates);
}

void Trainer::Restore(const TrainerState& state) {
  stream_->set_bad_chunks(state.bad_chunks);
  stream_->Seek(state.cursor);
  samples_.clear();
  RestoreOptimizer(state);
  scaler_.set_state(state.scaler);
  if (device_step_) device_step_->Set(state.scaler, state.updates);
  step_ = state.step;
  tokens_seen_ = state.tokens_seen;
  labels_seen_ = state.labels_seen;
}

}  // namespace trainwright
