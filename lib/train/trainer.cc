#include "lib/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/base/units.h"
#include "lib/dist/shared_work.h"
#include "lib/train/rank_places.h"
#include "lib/train/restore_optimizer.h"

namespace trainwright {
namespace {

/// Tokens of a micro-batch by the set that each comes from, added to `tokens`. Where spans have notes a step
/// takes some of a sample's texts, and its companion.
/// \param samples of the micro-batch
void AddTokensOfSets(std::span<const Sample> samples, const PackedBatch& batch,
                     std::vector<int64_t>* tokens) {
  if (batch.notes.empty()) {
    for (const Sample& sample : samples) (*tokens)[sample.set()] += sample.tokens();
    return;
  }
  for (size_t i = 0; i < batch.notes.size(); ++i) {
    const Sample& sample = samples[batch.notes[i].record];
    const bool is_companion = batch.notes[i].use == TextUse::kGenerative && sample.companion() != nullptr;
    (*tokens)[is_companion ? sample.companion()->set() : sample.set()] +=
        batch.span_starts[i + 1] - batch.span_starts[i];
  }
}

/// The same of all micro-batches.
/// \param rule by which the samples were divided into them
/// \returns as StepReport::source_tokens
std::vector<int64_t> TokensOfSets(std::span<const Sample> samples, const StepBatches& batches,
                                  const MicroBatchRule& rule, size_t sets) {
  std::vector<int64_t> tokens(sets > 1 ? sets : 0);
  if (tokens.empty()) return tokens;
  const std::vector<std::span<const Sample>> divided = DivideSamples(samples, rule);
  for (size_t i = 0; i < divided.size(); ++i) AddTokensOfSets(divided[i], batches.micro_batches[i], &tokens);
  return tokens;
}

/// Divides the same step further.
/// \returns false where it cannot be
bool DivideFurther(TrainPlan* plan) {
  if (plan->exact_world > 0) return false;
  if (plan->max_batch_tokens > 0) {
    if (plan->max_batch_tokens <= plan->sequence_tokens) return false;
    plan->max_batch_tokens = std::max(plan->max_batch_tokens / 2, plan->sequence_tokens);
    return true;
  }
  if (plan->batch == 1) return false;
  const int64_t samples = plan->samples_per_rank();
  int64_t batch = plan->batch / 2;
  while (samples % batch != 0) --batch;
  plan->batch = batch;
  plan->accum = samples / batch;
  return true;
}

/// What all ranks add up of their shares of a step.
std::vector<int64_t*> CountsOf(StepReport* report) {
  return {&report->tokens,
          &report->labels,
          &report->attention_pairs,
          &report->tokens_if_padded,
          &report->texts.queries,
          &report->texts.passages,
          &report->texts.generative_rows};
}

/// By which an objective's Loss adds up the means of its terms.
std::vector<double> TermWeights(const Objective& objective) {
  const size_t terms = objective.terms().size();
  std::vector<double> weights;
  for (size_t i = 0; i < terms; ++i) {
    std::vector<double> means(terms);
    means[i] = 1;
    weights.push_back(objective.Loss(means));
  }
  return weights;
}

/// Whether a step says something of every term that its loss adds up.
bool HasAllTerms(const Objective& objective, const StepBatches& batches) {
  const std::vector<double> weights = TermWeights(objective);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0 && batches.denominators[i] == 0) return false;
  }
  return true;
}

/// Of a step without a label: there is nothing to be the mean of.
void SetNoLosses(const Objective& objective, StepReport* report) {
  report->terms.clear();
  for (const LossTerm& term : objective.terms()) report->terms.push_back({term.name, NAN});
  report->loss_nats = NAN;
}

LossScaler::State ScalerOf(const StepState& state) {
  return {.scale = state.loss_scale,
          .good_steps = static_cast<int64_t>(state.good_steps),
          .skipped_steps = static_cast<int64_t>(state.skipped_steps)};
}

}  // namespace

double StepReport::term(const std::string& name) const {
  const auto found =
      std::find_if(terms.begin(), terms.end(), [&](const LossTermMean& mean) { return mean.name == name; });
  TRAINWRIGHT_CHECK(found != terms.end());
  return found->mean;
}

at::Tensor& TrainerState::optimizer_state(const std::string& name) {
  const auto found = std::find_if(optimizer.begin(), optimizer.end(),
                                  [&](const OptimizerState& state) { return state.name == name; });
  TRAINWRIGHT_CHECK(found != optimizer.end());
  return found->value;
}

Trainer::Trainer(TrainerParts parts, const TrainPlan& plan, at::Device device, bool defer)
    : model_(parts.model),
      loaders_(std::move(parts.loaders)),
      plan_(plan),
      device_(device),
      objective_(std::move(parts.objective)),
      optimizer_(std::move(parts.optimizer)),
      guard_(plan.precision == Precision::kFp16, {plan.skip_loss_z, plan.skip_grad_z}),
      world_(parts.world),
      passes_(parts.model, parts.world,
              {.bucket_bytes = parts.bucket_bytes, .exact_leaves = plan.exact_world}) {
  TRAINWRIGHT_CHECK(plan.ranks == world_->size());
  if (!defer && device.is_cpu()) return;
  device_step_.emplace(device, objective_->terms().size());
  device_step_->Set(guard_.state(), 0, TermWeights(*objective_));
}

StepReport Trainer::Step(bool read) {
  const auto start = std::chrono::steady_clock::now();
  const double data_wait_before_s = WaitOf(loaders_), wait_before_s = wait_s();
  StepReport report;
  report.step = step_ + 1;
  report.lr = LearningRate(plan_.schedule, step_);
  report.loss_scale = guard_.scaler().scale();
  StepBatches batches;
  std::exception_ptr failure;
  try {
    passes_.Prepare(*objective_);
    batches = TakeBatches(&report);
  } catch (...) {
    failure = std::current_exception();
  }
  const bool all_taken = AddUpCounts(!failure, &batches, &report);
  report.data_wait_s = WaitOf(loaders_) - data_wait_before_s;

  PassesEnd passes;
  Verdict verdict;
  if (all_taken && !batches.empty()) {
    passes = RunPasses(batches, &report);
    failure = passes.failure;
  }
  try {
    if (passes.sums.defined() && !failure && !device_step_) verdict = Judge(batches, passes, &report);
  } catch (...) {
    failure = std::current_exception();
  }
  const bool finite = EndPasses(failure, verdict.finite, &report);
  if (batches.empty()) {
    report.skipped = true;
    report.outlier = WithoutScores(ReportOf(guard_.outliers()));
    SetNoLosses(*objective_, &report);
  } else if (device_step_) {
    UpdateOnDevice(batches, passes, read, &report);
  } else {
    Update(verdict, finite, &report);
  }
  report.exchange_wait_s = wait_s() - wait_before_s;
  EndStep(start, &report);
  return report;
}

StepBatches Trainer::TakeBatches(StepReport* report) {
  const ProfileScope scope("take_batches", ProfilePart::kInput);
  if (samples_.empty()) {
    samples_ = ShareOf(objective_->NextStep(loaders_, plan_.samples_per_step(), plan_.drop_last),
                       world_->rank(), world_->size());
  }
  StepBatches batches =
      objective_->Cut(samples_, plan_.micro_batches(), world_->rank() * plan_.samples_per_rank());
  StepWork work;
  for (const PackedBatch& micro_batch : batches.micro_batches) {
    work += objective_->WorkOf(micro_batch, model_->config());
  }
  report->tokens = work.tokens;
  report->labels = work.labels;
  report->attention_pairs = work.attention_pairs;
  report->tokens_if_padded = work.tokens_if_padded;
  report->source_tokens = TokensOfSets(samples_, batches, plan_.micro_batches(), SourcesOf(loaders_));
  report->texts = work.texts;
  return batches;
}

bool Trainer::AddUpCounts(bool taken, StepBatches* batches, StepReport* report) {
  const ProfileScope scope("add_up_counts", ProfilePart::kExchange);
  const size_t sources = SourcesOf(loaders_);
  batches->denominators.resize(objective_->terms().size());
  report->source_tokens.resize(sources > 1 ? sources : 0);
  const std::vector<int64_t*> of_report = CountsOf(report);
  std::vector<int64_t> counts = {taken ? 0 : 1};
  for (const int64_t* count : of_report) counts.push_back(*count);
  const size_t own = counts.size();
  for (const std::vector<int64_t>* others : {&batches->denominators, &report->source_tokens}) {
    counts.insert(counts.end(), others->begin(), others->end());
  }
  const auto start = std::chrono::steady_clock::now();
  world_->Reduce(&counts);
  if (world_->size() > 1) waits_.counts_s += SecondsSince(start);
  for (size_t i = 0; i < of_report.size(); ++i) *of_report[i] = counts[1 + i];
  const auto denominators = counts.begin() + static_cast<ptrdiff_t>(own);
  const auto tokens = denominators + static_cast<ptrdiff_t>(batches->denominators.size());
  std::copy(denominators, tokens, batches->denominators.begin());
  std::copy(tokens, counts.end(), report->source_tokens.begin());
  return counts[0] == 0;
}

bool Trainer::EndPasses(const std::exception_ptr& failure, bool finite, StepReport* report) {
  const ProfileScope scope("end_passes", ProfilePart::kExchange);
  const double told_before_s = std::exchange(waits_.told_s, wait_s());
  std::vector<int64_t> answers = {finite ? 0 : 1};
  const std::vector<int64_t> places = PlaceAnswers(*world_, loaders_);
  const std::vector<int64_t> waits = WaitAnswers(*world_, waits_.told_s - told_before_s);
  answers.insert(answers.end(), places.begin(), places.end());
  answers.insert(answers.end(), waits.begin(), waits.end());
  const std::vector<int64_t> agreed = ShareEnd(world_, failure, answers);
  const auto agreed_waits = agreed.begin() + 1 + static_cast<ptrdiff_t>(places.size());
  RequireSamePlaces(world_, loaders_, {agreed.begin() + 1, agreed_waits});
  report->rank_waits = WaitsOf({agreed_waits, agreed.end()});
  return agreed[0] == 0;
}

PassesEnd Trainer::RunPasses(const StepBatches& batches, StepReport* report) {
  StepPass pass = {.model = model_,
                   .batches = &batches,
                   .loss_scale = report->loss_scale,
                   .seed = plan_.seed,
                   .step = report->step,
                   .pin = pin_};
  if (device_step_) {
    pass.loss_scale = 1;
    pass.loss_scale_on_device = device_step_->loss_scale();
  }
  return passes_.Run(*objective_, pass);
}

void Trainer::SetLosses(const std::vector<double>& sums, const std::vector<double>& denominators,
                        StepReport* report) const {
  const std::vector<LossTerm>& terms = objective_->terms();
  std::vector<double> means;
  report->terms.clear();
  for (size_t i = 0; i < terms.size(); ++i) {
    means.push_back(denominators[i] > 0 ? sums[i] / denominators[i] : 0.0);
    report->terms.push_back({terms[i].name, means[i]});
  }
  report->loss_nats = objective_->Loss(means);
}

void Trainer::UpdateOnDevice(const StepBatches& batches, const PassesEnd& passes, bool read,
                             StepReport* report) {
  device_step_->AddOnDevice(passes.sums);
  device_step_->Finish(report->step, batches.denominators, plan_.clip, guard_.scaler().enabled(), report->lr,
                       CycledBeta1(plan_.schedule, plan_.optimizer.beta1, step_), optimizer_.get(),
                       passes.squares);
  passes_.ShareValues();
  if (read) Look();
  report->read = read;
  report->loss_nats = last_read_.loss_nats;
  report->terms = last_read_.terms;
  report->grad_norm = last_read_.grad_norm;
  report->loss_scale = last_read_.loss_scale;
  report->skipped = last_read_.skipped;
  report->outlier = last_read_.outlier;
}

Trainer::Verdict Trainer::Judge(const StepBatches& batches, const PassesEnd& passes, StepReport* report) {
  const auto* values = passes.sums.const_data_ptr<double>();
  const std::vector<double> sums(values, values + passes.sums.numel());
  const std::vector<double> denominators(batches.denominators.begin(), batches.denominators.end());
  SetLosses(sums, denominators, report);
  const double norm = passes.squares.defined() ? std::sqrt(*passes.squares.const_data_ptr<double>())
                                               : GradientNorm(&model_->parameters());
  Verdict verdict = {
      .worst_loss_nats = WorstMean(sums.data(), denominators.data(), static_cast<int>(sums.size())),
      .run_loss_nats = HasAllTerms(*objective_, batches) ? std::optional(report->loss_nats) : std::nullopt,
      .clipped = DecideClip(norm, report->loss_scale, plan_.clip)};
  report->grad_norm = verdict.clipped.norm;
  verdict.finite = std::isfinite(verdict.worst_loss_nats) && verdict.clipped.finite;
  return verdict;
}

void Trainer::Update(const Verdict& verdict, bool finite, StepReport* report) {
  if (!finite && (!guard_.scaler().enabled() || report->loss_scale <= 1)) {
    RefuseNonFinite(report->step, verdict.worst_loss_nats, verdict.clipped.norm);
  }
  report->skipped = !guard_.Judge(finite, verdict.run_loss_nats, report->grad_norm);
  report->outlier = ReportOf(guard_.outliers());
  if (report->skipped) return;
  optimizer_->Step(report->lr, CycledBeta1(plan_.schedule, plan_.optimizer.beta1, step_),
                   verdict.clipped.factor);
  passes_.ShareValues();
}

void Trainer::EndStep(std::chrono::steady_clock::time_point start, StepReport* report) {
  ++step_;
  samples_.clear();
  tokens_seen_ += report->tokens;
  labels_seen_ += report->labels;
  report->host.step_s = SecondsSince(start);
  unread_time_s_ += report->host.step_s;
  ++unread_steps_;
  report->step_time_s = unread_time_s_ / static_cast<double>(unread_steps_);
  if (report->read) unread_time_s_ = 0, unread_steps_ = 0;
}

bool Trainer::HalveMicroBatches() {
  if (optimizer_->is_updating() || !DivideFurther(&plan_)) return false;
  // Gradients of one micro-batch were given away, and go on to be: adding several up takes more memory.
  if (model_->parameters().gradient_buffer().given_away()) {
    plan_.zero_accumulation = ZeroAccumulation::kReduce;
  }
  model_->ReleaseActivations();
  return true;
}

StepState Trainer::ReadDevice() {
  const DeviceStepNumbers numbers = device_step_->Read(&reader_);
  const StepState& state = numbers.state;
  guard_.set_state({ScalerOf(state), state.outliers});
  optimizer_->set_steps(static_cast<int64_t>(state.updates));
  SetLosses(numbers.sums, numbers.denominators, &last_read_);
  last_read_.grad_norm = state.grad_norm;
  last_read_.loss_scale = state.last_loss_scale;
  last_read_.skipped = state.skipped != 0;
  last_read_.outlier = ReportOf(state.outliers);
  return state;
}

void Trainer::Look() {
  if (!device_step_) return;
  const StepState state = ReadDevice();
  const auto own = static_cast<int64_t>(state.bad_step);
  const int64_t bad_step = world_->Agree({own})[0];
  if (bad_step == 0) return;
  RefuseNonFinite(own != 0 ? own : bad_step, state.bad_loss_nats, state.bad_grad_norm);
}

void Trainer::RefuseNonFinite(int64_t step, double loss_nats, double grad_norm) const {
  const bool loss_is_bad = !std::isfinite(loss_nats), norm_is_bad = !std::isfinite(grad_norm);
  const std::string problem = loss_is_bad || norm_is_bad
                                  ? std::string(loss_is_bad ? "loss" : "gradient norm") + " is " +
                                        FormatFixed(loss_is_bad ? loss_nats : grad_norm, 0)
                                  : "loss or gradient norm of another rank is not finite";
  throw Error(ErrorCode::kNonFinite, "training",
              problem + (guard_.scaler().enabled() ? " even at loss scale 1" : ""),
              "step " + std::to_string(step),
              "lower --lr, lengthen --warmup, or resume from the last checkpoint with other settings");
}

TrainerState Trainer::state() {
  if (device_step_) {
    const StepState device = ReadDevice();
    if (device.bad_step != 0) {
      RefuseNonFinite(static_cast<int64_t>(device.bad_step), device.bad_loss_nats, device.bad_grad_norm);
    }
  }
  return {.step = step_,
          .updates = optimizer_->steps(),
          .tokens_seen = tokens_seen_,
          .labels_seen = labels_seen_,
          .loaders = StatesOf(loaders_),
          .scaler = guard_.scaler().state(),
          .outliers = guard_.outliers(),
          .optimizer = optimizer_->States()};
}

void Trainer::Restore(const TrainerState& state) {
  RestoreLoaders(state.loaders, state.origin, loaders_);
  samples_.clear();
  RestoreOptimizer(state, optimizer_.get());
  guard_.set_state({state.scaler, state.outliers});
  if (device_step_) device_step_->Set(guard_.state(), state.updates, TermWeights(*objective_));
  step_ = state.step;
  tokens_seen_ = state.tokens_seen;
  labels_seen_ = state.labels_seen;
}

}  // namespace trainwright
