#include "lib/train/session.h"
#include "lib/base/profile_scope.h"
#include "lib/train/compute_changes.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/shell_word.h"
#include "lib/base/signals.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/run_completion.h"
#include "lib/device/device_memory.h"
#include "lib/device/gpu_activity.h"
#include "lib/dist/shared_work.h"
#include "lib/io/byte_sink.h"
#include "lib/io/process_memory.h"
#include "lib/model/generation_config.h"
#include "lib/model/trained_flops.h"
#include "lib/run/run_record.h"
#include "lib/run/watchdog.h"
#include "lib/train/compile_choice.h"
#include "lib/train/gather_ranks.h"
#include "lib/train/gpu_use_reader.h"
#include "lib/train/kernel_names.h"
#include "lib/train/plan_objective.h"
#include "lib/train/product_choice.h"
#include "lib/train/run_provenance.h"
#include "lib/train/run_template.h"
#include "lib/train/start_facts.h"
#include "lib/train/tf32_error.h"

namespace trainwright {
namespace {

/// Of a step into micro-batches.
std::string FlagsOfDivision(const TrainPlan& plan) {
  if (plan.max_batch_tokens > 0) return "--max-tokens-per-batch " + std::to_string(plan.max_batch_tokens);
  return "--batch " + std::to_string(plan.batch) + " --accum " + std::to_string(plan.accum);
}

/// \param before how the run accumulated until its memory ran out
std::string WarningOfDivision(const Error& problem, const TrainPlan& plan, ZeroAccumulation before) {
  const ZeroAccumulation now = plan.zero_accumulation;
  return "out of memory, " + std::string(problem.what()) + ": continuing with " + FlagsOfDivision(plan) +
         (now == before ? "" : " --zero-accum " + ZeroAccumulationName(now)) + ", as many samples a step";
}

/// So that who goes on from here does not begin with what there was no memory for: of plans that divide the
/// step otherwise the record's is taken, not that of a checkpoint before.
/// \param run null where this rank writes nothing
void StoreDivision(const RunDirectory* run, const TrainPlan& plan) {
  if (run == nullptr) return;
  try {
    StorePlan(run->record_path(), plan);
  } catch (const Error& error) {
    LogWarning(error.what());  // training can go on
  }
}

/// What the command reads that measures a run's model: what the run was evaluated on, or some of its data.
std::vector<std::string> PathsToEvaluate(const TrainSettings& settings, bool splits) {
  if (!splits && !settings.eval_data.empty()) return settings.eval_data;
  std::vector<std::string> paths = DataPaths(settings);
  if (!splits) paths.resize(1);
  return paths;
}

constexpr char kNoStepHint[] =
    "no step was taken yet, so it is not the learning rate: look at the weights that the run began with, and "
    "at the data";

/// The last step whose weights had a loss that the watchdog found in order when it stopped the run after
/// `step`: a step's loss is that of the weights before it.
int64_t LastCalmStep(const TrainSettings& settings, const ResolvedRun& run, const LossWatchdog& watchdog,
                     int64_t step) {
  return step - watchdog.bad_in_a_row() * LogEvery(settings, run.compute.device) - 1;
}

/// The newest checkpoint up to a step that a run can go on from.
std::optional<int64_t> NewestResumable(const RunDirectory& run, int64_t most_step) {
  std::optional<int64_t> newest;
  for (const int64_t step : run.CheckpointSteps()) {
    const std::string state = run.CheckpointPath(step) + "/" + kStateFileName;
    if (step <= most_step && std::filesystem::exists(state)) newest = step;
  }
  return newest;
}

/// What goes on from a checkpoint after the loss diverged, or it or the gradients were not finite: with half
/// the peak learning rate, in a run of its own.
/// \param most_step up to which the weights are worth it
std::string NonFiniteHint(const RunDirectory& run, const TrainPlan& plan,
                          int64_t most_step = std::numeric_limits<int64_t>::max()) {
  std::string out = run.path() + "-lower-lr";
  for (int number = 2; std::filesystem::exists(out); ++number) {
    out = run.path() + "-lower-lr-" + std::to_string(number);
  }
  const std::optional<int64_t> step = NewestResumable(run, most_step);
  const std::string from = step ? "--branch-from " + ShellWord(run.path() + "@" + std::to_string(*step))
                                : "--config " + ShellWord(run.config_path());
  return "with half the learning rate: train " + from + " --lr " +
         nlohmann::json(plan.schedule.peak_lr / 2).dump() + " --out " + ShellWord(out);
}

RunRecorderOptions RecorderOptions(const TrainSettings& settings, const TrainJobContext& context,
                                   at::Device device) {
  std::function<int64_t()> device_bytes;
  if (device.is_cuda()) device_bytes = [device] { return PeakDeviceBytes(device); };
  return {.log_every = LogEvery(settings, device),
          .progress = context.progress,
          .watchdog = ParseWatchdogMode(settings.watchdog, "--watchdog"),
          .watchdog_ratio = settings.watchdog_ratio,
          .cost_per_hour = settings.cost_per_hour,
          .gpu_use = GpuUseReader(device),
          .device_bytes = device_bytes};
}

/// What a session fixes of all its checkpoints.
CheckpointFacts FactsOfCheckpoints(const TrainSettings& settings, const ResolvedRun& run,
                                   const ModelSetup& setup, const Trainer& trainer,
                                   std::chrono::steady_clock::time_point start) {
  return {.provenance = ProvenanceOf(run, setup),
          .base_folder = setup.base_folder,
          .compress_state = settings.compress_state,
          .compress_model = settings.compress_model,
          .model_only = settings.save_model_only,
          .start = start,
          .first_step = trainer.step(),
          .tokens_before = trainer.tokens_seen(),
          .embedding = trainer.objective().EmbeddingOf(run.data->set()),
          .chat_template = TemplateOfRun(run, setup),
          .generation_before =
              setup.before.empty() ? nlohmann::ordered_json() : ReadGenerationConfig(setup.before)};
}

/// Where fp32 GEMMs round to TF32.
std::optional<Tf32Error> Tf32ErrorOf(const ResolvedRun& run) {
  if (!run.compute.identity.tf32) return std::nullopt;
  return MeasureTf32Error(run.model.config, run.compute.device);
}

/// A branch compares its evaluations with each other: it has no checkpoint of its parent's best one, and what
/// the parent stopped by says nothing of it.
void RestoreHistory(const ResumePoint& resume, TrainingHistory* history) {
  history->Restore(ReadCheckpointMetadata(resume.checkpoint));
  if (resume.of_parent) history->CompareFrom(resume.state.trainer.step);
}

/// What a resumed run does otherwise than the run before.
std::vector<std::string> WarningsOfChanges(const TrainSettings& settings, const ResolvedRun& run,
                                           const TrainingHistory& history) {
  const ResumePoint& resume = *run.resume;
  std::vector<std::string> warnings = resume.warnings;
  if (resume.data_changed) {
    warnings.push_back((resume.of_parent ? "other data than the parent's, or in another order: reading "
                                         : "the data changed: reading ") +
                       DataNames(settings) + " from its beginning");
  }
  if (history.compares_anew()) {
    warnings.push_back(
        "evaluations are on other data than before, or on more or less of it: the best one, and "
        "--early-stop, count from here on");
  }
  for (const std::string& warning : WarningsOfComputeChanges(run)) warnings.push_back(warning);
  return warnings;
}

/// Of a start model whose tokenizer may not be the data's.
void WarnOfTokenizer(const TrainSettings& settings, const ResolvedRun& run, RunListener* listener) {
  if (!run.model.start || run.resume) return;
  const std::string warning = WarningOfTokenizer(*run.model.start, settings.init);
  if (!warning.empty()) listener->Warn(warning);
}

void WarnOfUselessOffload(const GradientBuffer& gradients) {
  if (gradients.memory_bytes() != gradients.size_bytes()) return;
  LogWarning(
      "--offload gradients gains nothing here: what is trained is one part, whose gradients are needed "
      "together");
}

/// Of --profile; null without it, and where this rank writes nothing.
std::unique_ptr<ProfileRecorder> MakeProfileRecorder(const TrainSettings& settings, const ResolvedRun& run,
                                                     int64_t first_step, const RunDirectory* directory,
                                                     RunListener* listener) {
  if (directory == nullptr || !settings.profile) return nullptr;
  return std::make_unique<ProfileRecorder>(*settings.profile, first_step, run.plan.schedule.total_steps,
                                           MakeActivitySource(run.compute.device), directory->trace_path(),
                                           listener);
}

}  // namespace

Session::Session(const TrainSettings& settings, const TrainJobContext& context, World* world,
                 ResolvedRun* run, std::unique_ptr<RunDirectory> directory)
    : settings_(settings),
      context_(context),
      world_(world),
      run_(run),
      start_(context.start),
      directory_(std::move(directory)),
      setup_(run->resume ? SetUpResumedModel(context.families, *run)
                         : SetUpNewModel(context.families, settings, directory_.get(), run)),
      history_(EvaluationNameOf(settings, *run), run->cadence.eval_every) {
  TRAINWRIGHT_CHECK((directory_ != nullptr) == world->is_writer());
  const bool compares = world->size() > 1;
  if (compares) start_facts_ = FactsOfWeights(setup_.model->parameters());
  Shard();
  MakeTrainer(context);
  if (run->resume) {
    trainer_->Restore(run->resume->state.trainer);
    run->resume->state.trainer.optimizer.clear();  // of which the trainer has its own
    run->resume->watch->ThrowIfChanged();          // they were mapped
    if (compares) {
      start_facts_.merge(
          FactsOfState(run->resume->state.trainer, trainer_->optimizer(), run->resume->checkpoint));
    }
    RestoreHistory(*run->resume, &history_);
    first_step_ = trainer_->step();
  }
}

Session::~Session() = default;

void Session::Open() {
  ChooseGraphs(trainer_.get(), run_);
  OpenRecorder(context_);
  profiler_ = MakeProfileRecorder(settings_, *run_, first_step_, directory_.get(), listener_.get());
  const ShardSet* evaluated = run_->data->evaluated(run_->plan.eval_split);
  evaluator_ = std::make_unique<Evaluator>(&trainer_->objective(), setup_.model.get(), evaluated,
                                           EvaluatorOptions{.most_tokens = settings_.eval_tokens.value_or(0),
                                                            .skip_bad_chunks = settings_.skip_bad_chunks > 0},
                                           world_, listener_.get(), &history_);
  if (run_->resume) WarnOfChanges();
  WarnOfTokenizer(settings_, *run_, listener_.get());
}

void Session::Shard() {
  FlatParameters& parameters = setup_.model->parameters();
  if (run_->plan.sharding() == Sharding::kNone) return;
  const ShardLayout layout(parameters.elements(), world_->rank(), world_->size());
  parameters.Shard(layout, run_->plan.gives_gradients_away());
  ReturnFreeHeap();
  shards_ = std::make_unique<ShardReader>(world_, layout, run_->compute.bucket_bytes);
}

void Session::MakeTrainer(const TrainJobContext& context) {
  const ComputeChoice& compute = run_->compute;
  LanguageModel* model = setup_.model.get();
  trainer_ = std::make_unique<Trainer>(
      TrainerParts{.model = model,
                   .loaders = LoadersOf(run_->loaders),
                   .objective = ObjectiveOf(run_->plan, context.objectives, run_->data->records()),
                   .optimizer = MakeOptimizer(context.optimizers, &model->parameters(), run_->plan.optimizer,
                                              run_->plan.seed),
                   .world = world_,
                   .bucket_bytes = compute.bucket_bytes},
      run_->plan, compute.device);
  trainer_->set_pin(compute.pin);
  model->set_activation_checkpointing(compute.checkpointing);
  model->set_tbptt(run_->plan.tbptt);
  model->Offload(compute.offload, compute.offload_folder);
  if (compute.offload.gradients) WarnOfUselessOffload(model->parameters().gradient_buffer());
}

void Session::OpenRecorder(const TrainJobContext& context) {
  if (!directory_) {
    listener_ = std::make_unique<SilentListener>();
    return;
  }
  const TrainingData& data = *run_->data;
  const ShardTotals& totals = data.set().totals();
  auto recorder = std::make_unique<RunRecorder>(
      directory_.get(),
      RunFacts{.plan = run_->plan,
               .model = run_->model.config,
               .flops = CountTrainedFlops(setup_.model.get(), run_->plan.tuning),
               .loss_terms = trainer_->objective().terms(),
               .parameters = setup_.model->parameters().count(),
               .compute = run_->compute.identity,
               .kernels = KernelNames(run_->model.config, run_->plan, run_->compute),
               .types = ValueTypesOf(*setup_.model),
               .tf32_error = Tf32ErrorOf(*run_),
               .peak_tflops = PeakTflops(settings_, run_->compute.device, run_->plan.precision),
               .data_tokens = totals.tokens,
               .data_documents = totals.documents,
               .held_out = run_->held_out,
               .data_sha256 = HexEncode(data.set().content_sha256()),
               .tokenizer_sha256 = HexEncode(data.set().header().tokenizer.sha256),
               .sources = data.sources(),
               .data_to_evaluate = PathsToEvaluate(settings_, run_->plan.eval_split.has_value()),
               .argv = context.argv,
               .start = start_,
               .first_step = trainer_->step(),
               .tokens_before = trainer_->tokens_seen()},
      RecorderOptions(settings_, context, run_->compute.device));
  recorder_ = recorder.get();
  listener_ = std::move(recorder);
  if (run_->stream().numbered()) {
    WriteFileAtomically(directory_->path() + "/" + kSamplesUsedFile,
                        AsBytes(data.FormatSamplesUsed(LoadersOf(run_->loaders))));
  }
  source_ = std::make_unique<RunCheckpointSource>(
      run_, setup_.model.get(), trainer_.get(), &history_, listener_.get(),
      FactsOfCheckpoints(settings_, *run_, setup_, *trainer_, start_), shards_.get());
  saver_ = std::make_unique<Saver>(
      settings_, start_, run_->cadence.SavesBetween(trainer_->step(), run_->plan.schedule.total_steps),
      directory_.get(), source_.get(), listener_.get());
  for (const std::string& trap : TrapsOf(settings_, context, *run_)) listener_->Warn(trap);
}

void Session::WarnOfChanges() {
  const ResumePoint& resume = *run_->resume;
  if (recorder_ != nullptr && !resume.state.watchdog.is_null()) {
    recorder_->loss_watchdog().set_state(resume.state.watchdog, resume.checkpoint);
  }
  if (saver_ && !resume.of_parent) saver_->GoOnFrom(trainer_->step(), resume.checkpoint);
  for (const std::string& warning : WarningsOfChanges(settings_, *run_, history_)) listener_->Warn(warning);
}

int Session::Run() {
  ChooseProducts(settings_, trainer_->step(), world_, directory_.get(), setup_.model.get(), run_);
  DoAlike(world_, [this] { Open(); });
  int status = 0;
  try {
    status = WithMemoryErrors([&] { return DescribeMemoryUser(settings_, context_, *run_, point()); },
                              [&] { return Loop(); });
  } catch (const Error& error) {
    RecordFailure(error);
    if (error.code() != ErrorCode::kNonFinite) throw;
    if (!directory_) throw CommonError(error);  // of which the writer's rank tells
    throw Error(error.code(), error.object(), error.problem(), error.place(),
                error.place() == "step 1" ? kNoStepHint : NonFiniteHint(*directory_, trainer_->plan()));
  }
  if (!saver_) return status;
  if (ends_by_.watchdog) {
    LogHint(NonFiniteHint(*directory_, plan(),
                          LastCalmStep(settings_, *run_, recorder_->loss_watchdog(), step())));
  }
  recorder_->PrintReport(status, saver_->saved());
  if (const std::set<int64_t> missing = saver_->MissingCopies(); !missing.empty()) {
    LogError(std::to_string(missing.size()) + " of the checkpoints that were saved " +
             (missing.size() == 1 ? "has" : "have") + " no copy, the first is step " +
             std::to_string(*missing.begin()) + "; see the warnings");
  }
  return status;
}

void Session::RecordFailure(const Error& error) {
  // No other rank waits while this one ends, nor does this one, for longer than a save takes, where another
  // ended the run.
  world_->Announce(static_cast<int>(error.code()), error.what());
  const bool alone = world_->size() == 1;
  // The record of a failed run says why; a failing disk must not hide the first error.
  if (saver_) {
    try {
      saver_->FinishSave(/*wait=*/true);
    } catch (const Error& save_error) {
      LogWarning(save_error.what());
    }
    try {
      alone ? saver_->FinishCopies(/*wait=*/true) : saver_->AbandonCopies();
    } catch (const Error&) {
    }
  }
  try {
    listener_->RecordEnd(static_cast<int>(error.code()), error.what());
  } catch (const Error&) {
  }
}

nlohmann::ordered_json Session::Summary() const {
  if (!saver_) return {{"steps", step()}};
  return recorder_->Summary(saver_->saved());
}

template <typename Work>
auto Session::InWhatMemoryThereIs(const Work& work) {
  for (;;) {
    const ZeroAccumulation accumulation = trainer_->plan().zero_accumulation;
    std::optional<Error> problem;
    try {
      return work();
    } catch (const std::exception& exception) {
      if (settings_.auto_oom && AsMemoryError(exception, {}))
        problem = AsMemoryError(exception, DescribeMemoryUser(settings_, context_, *run_, point()));
      if (!problem || !trainer_->HalveMicroBatches()) throw;
    }
    const TrainPlan& plan = trainer_->plan();
    listener_->set_plan(plan);
    StoreDivision(directory_.get(), plan);
    listener_->Warn(WarningOfDivision(*problem, plan, accumulation));
  }
}

void Session::EvaluateIfDue() {
  const int64_t step = trainer_->step();
  if (!evaluator_->due(step)) return;
  InWhatMemoryThereIs([&] { evaluator_->Evaluate(step, trainer_->plan()); });
  if (evaluator_->due(step)) history_.LeaveEvaluation(step);  // a signal ended it
}

void Session::EvaluateBeforeSteps() {
  if (!LacksEvaluation(*run_, history_, trainer_->step())) return;
  EvaluateIfDue();
  const bool goes_on = run_->resume && !run_->resume->of_parent;
  if (saver_ && goes_on && history_.evaluation_nats(trainer_->step()))
    saver_->AddEvaluation(trainer_->step());
}

bool Session::StoppedEarly() const {
  return history_.StopsEarly(settings_.early_stop);
}

void Session::FinishFiles(bool wait) {
  if (!saver_) return;
  saver_->FinishSave(wait);
  saver_->FinishCopies(wait, [this] { world_->Look(); });
}

int Session::AgreedSignal() {
  return static_cast<int>(world_->Agree({StopSignal()})[0]);
}

bool Session::StepAndSave(bool time_to_save) {
  const SaveInterval& save_every = run_->cadence.save_every;
  const int64_t eval_every = run_->cadence.eval_every;
  // On a GPU a look at the step's numbers waits for all queued work, so it is taken only where they are used.
  const int64_t next = trainer_->step() + 1;
  const auto due = [&](int64_t every) { return every > 0 && next % every == 0; };
  const bool read = next == trainer_->plan().schedule.total_steps || next <= first_step_ + 2 ||
                    due(LogEvery(settings_, run_->compute.device)) || due(eval_every) ||
                    due(save_every.steps) || time_to_save;
  const double epochs_before = run_->epochs();
  if (saver_) saver_->FinishSave(/*wait=*/false);
  const bool saving = saver_ && saver_->busy();
  StepReport report = InWhatMemoryThereIs([&] { return trainer_->Step(read); });
  if (due(settings_.empty_cache_every)) report.host.cleanup_s = EmptyDeviceCache(run_->compute.device);
  for (const auto& [name, loader] : run_->loaders) {
    for (const std::string& warning : loader->TakeWarnings()) listener_->RecordWarning(warning);
  }
  listener_->RecordStep(report, run_->epochs(), saving);
  if (saver_ && next == first_step_ + 1) saver_->SavesInBackground();
  if (report.read && report.labels > 0) history_.AddStep(report.step, report.loss_nats, report.lr);
  if (saver_) saver_->FinishCopies(/*wait=*/false);

  const double limit_s = settings_.max_minutes * 60;
  const bool time_is_up = limit_s > 0 && SecondsSince(start_) > limit_s;
  const bool ended_epoch = save_every.epochs && run_->EndedEpoch(epochs_before, trainer_->plan());
  const std::vector<int64_t> stops = world_->Agree(
      {StopSignal(), time_is_up ? 1 : 0, listener_->stop_reason() ? 1 : 0, ended_epoch ? 1 : 0});
  ends_by_.signal = static_cast<int>(stops[0]);
  ends_by_.watchdog = stops[2] != 0;
  const bool stopping = ends_by_.signal != 0 || stops[1] != 0 || ends_by_.watchdog;
  const bool save_is_due = due(save_every.steps) || time_to_save || stops[3] != 0 || trainer_->done();
  if (due(eval_every) || trainer_->done() || (save_is_due && settings_.keep_best > 0)) {
    if (!stopping) EvaluateIfDue();
    if (stopping && evaluator_->due(next)) history_.LeaveEvaluation(next);
  }
  if (stopping || save_is_due) Save();
  return stopping;
}

int Session::Loop() {
  if (world_->size() > 1) RequireSameStart(world_, start_facts_);
  listener_->set_ranks(GatherPlaces(world_, run_->compute.device));
  const double save_every_s = run_->cadence.save_every.time_s;
  EvaluateBeforeSteps();
  bool stopping = false;
  while (!stopping && !trainer_->done()) {
    const bool time_to_save = saver_ && save_every_s > 0 && SecondsSince(saver_->saved_at()) >= save_every_s;
    const std::vector<int64_t> agreed =
        world_->Agree({StopSignal(), time_to_save ? 1 : 0, StoppedEarly() ? 1 : 0});
    ends_by_.signal = static_cast<int>(agreed[0]);
    ends_by_.early = agreed[2] != 0;
    if (ends_by_.signal != 0 || ends_by_.early) break;
    if (profiler_) profiler_->BeginStep(trainer_->step() + 1);
    stopping = StepAndSave(agreed[1] != 0);
    if (profiler_) profiler_->EndStep(stopping || trainer_->done());
  }
  if (profiler_) profiler_->Finish();
  return End();
}

void Session::Save() {
  const OpaqueProfileScope scope("save", ProfilePart::kCheckpoint);
  trainer_->Look();
  const auto save = [&] {
    if (saver_) saver_->Save(trainer_->step());
  };
  if (!shards_) return save();
  shards_->Run(ShardsOfCheckpoint(*setup_.model, trainer_->optimizer()), save);
}

int Session::End() {
  Save();
  FinishFiles(/*wait=*/true);
  if (ends_by_.signal == 0) ends_by_.signal = AgreedSignal();
  int status = 0;
  std::string reason = kCompleteEnd;
  const bool done = trainer_->done() && !evaluator_->due(trainer_->step());
  bool complete = done;
  if (ends_by_.watchdog) {
    status = static_cast<int>(ErrorCode::kNonFinite);
    reason = listener_->stop_reason().value_or("watchdog of another rank");
  } else if (!done && ends_by_.early) {
    reason = kEarlyStop;
    complete = true;
    LogInfo("stopped early: the last " + std::to_string(*settings_.early_stop) +
            " evaluations were no better than that after step " +
            std::to_string(history_.best_evaluation_step()));
  } else if (!done) {
    status = ends_by_.signal == 0 ? 0 : StopStatus(ends_by_.signal);
    reason = ends_by_.signal != 0 ? "signal" : "time limit";
  }
  if (saver_) saver_->RotateCopied(trainer_->step());
  if (status == 0 && saver_ && !saver_->MissingCopies().empty()) {
    status = static_cast<int>(ErrorCode::kIo);
    reason += ", but copies of checkpoints are missing";
  }
  const int64_t peak_bytes = PeakResidentBytes();
  listener_->set_memory(HeldMemory(*run_, setup_, *trainer_, point().snapshot_bytes, peak_bytes),
                        peak_bytes + PeakDeviceBytes(run_->compute.device));
  listener_->set_ranks(GatherRanks(world_, run_->compute.device));
  if (const auto graphs = GraphCountsOf(trainer_.get())) listener_->set_graphs(*graphs);
  if (run_->compute.offload.any()) listener_->set_offload(setup_.model->offload_counts());
  listener_->RecordEnd(status, reason);
  if (directory_ && complete && status == 0) WriteRunCompletion(*directory_, trainer_->step(), reason);
  return status;
}

}  // namespace trainwright
