#include "lib/train/resolved_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/dist/rank_threads.h"
#include "lib/io/process_memory.h"
#include "lib/memory/agreed_batch.h"
#include "lib/memory/batch_search.h"
#include "lib/model/hf_folder.h"
#include "lib/model/language_model.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/nn/precision.h"
#include "lib/run/branch_plan.h"
#include "lib/run/loader_plan.h"
#include "lib/run/plan_codec.h"
#include "lib/run/remembered_options.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_extension.h"
#include "lib/run/run_planner.h"
#include "lib/run/run_traps.h"
#include "lib/run/settings_check.h"
#include "lib/spec/config_json.h"
#include "lib/train/plan_objective.h"
#include "lib/train/run_passes.h"

namespace trainwright {
namespace {

constexpr double kManyPasses = 16;  // over the data
constexpr double kFindBatchTimeS = 20;

OpenedLoaders OpenLoaders(const TrainJobContext& context, const ResolvedRun& run, TrainPlan plan,
                          const LoaderOptions& loader) {
  const ObjectiveDescription& objective = context.objectives.Find(plan.objective).description;
  if (!objective.mixes) run.data->RequireAlike();
  SampleStreamOptions options = plan.stream_options();
  options.sets = run.data->sets();
  RelocateOwnFiles(objective.own, run.begun_in, &plan);
  LoaderOptions own = loader;
  own.indexes = run.indexes;
  return ObjectiveOf(plan, context.objectives)->OpenLoaders(&run.data->set(), options, own);
}

EpochCounts CountEpoch(const TrainJobContext& context, const TrainPlan& plan, const ResolvedRun& run) {
  return OpenLoadersApart(context, run, plan).at(kMainLoader)->CountEpoch();
}

void OpenOwnLoaders(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                    ResolvedRun* run) {
  PlannedLoader cache;
  PlanDataCache(settings, run->data->set().header().chunks_per_frame, run->plan.block_chunks, &cache);
  run->compute.loader.cache_bytes = cache.options.cache_bytes;
  log->Announce(cache.reasons);
  run->loaders = OpenLoaders(context, *run, run->plan, run->compute.loader);
}

PlanChoices ChoicesOf(const TrainJobContext& context) {
  PlanChoices choices;
  for (const ObjectiveKind& kind : context.objectives.all()) choices.objectives.push_back(kind.description);
  for (const OptimizerKind& kind : context.optimizers.all()) choices.optimizers.push_back(kind.description);
  return choices;
}

/// What holds for all ranks: the writer tells of it.
void WarnOnce(const TrainJobContext& context, const std::string& message) {
  if (context.world->is_writer()) LogWarning(message);
}

/// Tells of sets that are named and not read: those of records that the objective's mode has no use for.
void WarnOfUnread(const TrainJobContext& context, const ResolvedRun& run) {
  for (const OrderedSet& set : run.data->sets()) {
    const bool is_read = std::any_of(run.loaders.begin(), run.loaders.end(), [&](const auto& loader) {
      const std::vector<OrderedSet>& sets = loader.second->order().sets();
      return std::any_of(sets.begin(), sets.end(),
                         [&](const OrderedSet& own) { return own.number == set.number; });
    });
    if (is_read) continue;
    WarnOnce(context, run.data->sources().at(set.number).path + ": is not read, for this run takes no " +
                          RecordKindName(set.records) + " records");
  }
}

void WarnOfOtherEmbedding(const TrainSettings& settings, const TrainJobContext& context,
                          const ResolvedRun& run) {
  if (!context.world->is_writer()) return;
  const auto trained = ObjectiveOf(run.plan, context.objectives)->EmbeddingOf(run.data->set());
  const std::string folder =
      settings.adapter.empty() ? run.model.start->folder : ResolveCheckpoint(settings.adapter);
  const std::string warning = WarningOfOtherEmbedding(folder, trained);
  if (!warning.empty()) LogWarning(warning);
}

PlanFacts FactsOf(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  if (settings.objective != "auto") context.objectives.Find(settings.objective);
  if (!settings.optimizer.empty()) context.optimizers.Find(settings.optimizer);
  return {.model = run.model.config,
          .gpu = run.compute.device.is_cuda(),
          .fast_bf16 = HasFastProducts(Precision::kBf16, run.compute.device),
          .count_epoch = [&](const TrainPlan& plan) { return CountEpoch(context, plan, run); },
          .records = run.data->records(),
          .require_alike = [&run] { run.data->RequireAlike(); },
          .choices = ChoicesOf(context),
          .ranks = context.world->size()};
}

PlannedRun Plan(const TrainSettings& settings, const TrainJobContext& context,
                const std::optional<DocumentSplit>& split, const ResolvedRun& run) {
  PlanFacts facts = FactsOf(settings, context, run);
  facts.eval_split = split;
  if (!settings.adapter.empty()) facts.adapter = ReadPeftConfig(ResolveCheckpoint(settings.adapter)).lora;
  return PlanRun(settings, facts);
}

std::string WhyThisBatch(const BatchSearch& search) {
  if (search.chosen && search.stop == BatchStop::kMemory) return "the fastest of those that fit";
  if (search.chosen) return "larger ones are no faster";
  return search.stop == BatchStop::kMemory ? "larger ones do not fit" : "the largest that was tried in time";
}

/// --find-batch: the settings with the micro-batch that was found.
TrainSettings FindBatch(const TrainSettings& asked, const TrainJobContext& context, const TrainPlan& plan,
                        const ResolvedRun& run, ChoiceLog* log) {
  const ComputeChoice& compute = run.compute;
  const bool on_cpu = compute.device.is_cpu();
  int64_t memory_bytes = on_cpu ? AvailableMemoryBytes() : FreeDeviceBytes(compute.device);
  // All have looked before one takes of it.
  memory_bytes /= RanksThatShare(context.world, on_cpu ? MachineIdentity() : GpuIdentity(compute.device));
  if (context.process.memory_cap_bytes) memory_bytes = *context.process.memory_cap_bytes;
  const std::shared_ptr<const Objective> objective = ObjectiveOf(plan, context.objectives);
  if (memory_bytes > 0) {
    const int64_t held_bytes = objective->HeldBytes(ShapeOfStep(plan), run.model.config);
    memory_bytes = std::max<int64_t>(1, memory_bytes - held_bytes);
  }
  const bool keeps_step = asked.batch || asked.accum;
  const BatchSearch search =
      SearchBatch(context.families,
                  {.training = MemoryOf(context, run, plan),
                   .passes = LongestMicroBatches(objective, LoadersOf(OpenLoadersApart(context, run, plan)),
                                                 keeps_step ? plan.samples_per_rank() : 0),
                   .time_s = kFindBatchTimeS,
                   .memory_bytes = memory_bytes,
                   .offload_folder = compute.offload_folder});
  const BatchPoint found = AgreeOnBatch(context.world, search);
  int64_t batch = found.batch;
  TrainSettings settings = asked;
  if (batch == 0) {
    WarnOnce(context,
             "--find-batch: not one sample could be tried; batch " + std::to_string(plan.batch) + " stays");
    return settings;
  }
  const bool is_own = (search.chosen ? *search.chosen : search.points.back()).batch == batch;
  std::string reason = FormatCount(found.tokens.median) + " tokens/s, " +
                       (is_own ? WhyThisBatch(search) : "larger ones do not suit every rank");
  if (keeps_step) {
    const int64_t samples = plan.samples_per_rank();
    const int64_t most = plan.exact_world > 0 ? samples * plan.ranks / plan.exact_world : samples;
    batch = std::min(batch, most);
    while (most % batch != 0) --batch;
    settings.accum = samples / batch;
    reason += "; --accum " + std::to_string(*settings.accum) + " keeps the " +
              std::to_string(plan.samples_per_step()) + " samples a step";
  }
  settings.batch = batch;
  log->Announce({{"batch", reason, "batch " + std::to_string(batch)}});
  return settings;
}

/// Adapters that cannot be are refused before anything is written.
void CheckAdapters(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  const std::optional<StartModel>& start = run.model.start;
  if (!settings.adapter.empty() && !settings.allow_other_base && start) {
    RequireBaseOfAdapter(ResolveCheckpoint(settings.adapter), start->folder,
                         "name the adapter's base with --init, or take this base by --allow-other-base",
                         start->provenance.at("files"));
  }
  if (run.plan.tuning.lora) {
    MakeModel(context.families, run.model.config, Precision::kFp32, at::Device(at::kMeta), std::nullopt,
              AttentionBackend::kAuto, run.plan.tuning);
  }
}

void CountHeldOut(const TrainSettings& settings, ResolvedRun* run) {
  if (!run->plan.eval_split) return;
  const bool masked = run->plan.labels_on() == LossOn::kAssistant;
  run->held_out = run->data->CountHeldOut(*run->plan.eval_split, masked, settings.skip_bad_chunks > 0);
}

/// \throws Error{kUsage} where the settings name another model than the run's
void CheckSameModel(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  RequireAskedShape(context.families.descriptions(), settings, run.model.config, "the run's model");
  if (settings.model.empty()) return;
  const ModelConfig asked = ChooseModel(context.families.descriptions(), settings,
                                        run.data->set().header().tokenizer, run.compute.device.is_cuda())
                                .config;
  if (EncodeConfigJson(asked) != EncodeConfigJson(run.model.config)) {
    throw Error(ErrorCode::kUsage, "--model", settings.model + " is another model than the run's", "",
                "leave out --model to continue the run, or start another with --out");
  }
}

Error OtherData(const TrainSettings& settings, const ResolvedRun& run, const std::string& data_sha256) {
  if (run.stream().numbered() && HexEncode(run.data->set().content_sha256()) == data_sha256) {
    return Error(
        ErrorCode::kBadInput, DataNames(settings),
        "is the data that the run was started on, but other samples are taken of it", "",
        "restore the file of --num-samples, or the chunks that cannot be read, as they were then; or "
        "go on from the beginning of the data by --allow-data-change");
  }
  return Error(
      ErrorCode::kBadInput, DataNames(settings), "is not the data that the run was started on",
      "content " + HexEncode(run.data->set().content_sha256()).substr(0, 12) + ", the run's " +
          data_sha256.substr(0, 12),
      "give the run's data by --data, or go on with this data from its beginning by --allow-data-change");
}

/// The length, where another is asked for, and what else of the settings differs from the plan.
/// \returns what the user should know
std::vector<std::string> Reconcile(const TrainSettings& settings, const TrainJobContext& context,
                                   int64_t steps_taken, ResolvedRun* run) {
  TakeOwnFiles(settings, &run->plan);
  const auto count_epoch = [&](const TrainPlan& plan) { return CountEpoch(context, plan, *run); };
  std::vector<std::string> notes = ExtendRun(settings, count_epoch, steps_taken, &run->plan);
  for (std::string& note : ReconcilePlan(settings, &run->plan, context.world->size())) {
    notes.push_back(std::move(note));
  }
  return notes;
}

/// The model of a checkpoint, or the base that its adapters were trained on.
void OpenModelOf(const TrainSettings& settings, const TrainJobContext& context, const std::string& checkpoint,
                 ResolvedRun* run) {
  if (run->plan.tuning.lora) {
    run->model = ChooseBase(context.families.descriptions(), settings, checkpoint,
                            run->data->set().header().tokenizer, run->compute.device.is_cuda());
  } else {
    run->model.config = ReadHfConfig(context.families.descriptions(), checkpoint);
  }
}

/// \throws Error{kUsage} on what does not go together with a state that is divided among ranks
void CheckShards(const TrainSettings& settings, const TrainJobContext& context, const TrainPlan& plan) {
  CheckSharding(settings, plan);
  if (plan.sharding() == Sharding::kNone) return;
  const OptimizerDescription& optimizer = context.optimizers.Find(plan.optimizer.name).description;
  if (optimizer.shardable) return;
  throw Error(ErrorCode::kUsage, "--zero " + std::to_string(plan.zero) + ", --optimizer " + optimizer.name,
              "cannot both be in force: its rule needs more than one rank's part of the weights", "",
              "leave out --zero");
}

/// Relative paths in a parent's plan start from where the parent was begun.
void RelocateFilesOfParent(const TrainJobContext& context, const std::string& checkpoint, TrainPlan* plan) {
  const std::vector<OwnOption>& own = context.objectives.Find(plan->objective).description.own;
  const bool has_files = std::any_of(own.begin(), own.end(), [&](const OwnOption& option) {
    const auto found = plan->objective_own.find(option.name);
    return option.names_file() && found != plan->objective_own.end() && !found->second.ToString().empty();
  });
  if (!has_files) return;
  const std::filesystem::path run = std::filesystem::path(checkpoint).parent_path().parent_path();
  if (const std::optional<RunRecord> record = ReadRunRecord((run / kRunRecordFile).string())) {
    RelocateOwnFiles(own, record->working_directory, plan);
  }
}

/// The data that a run has trained on.
struct KnownData {
  std::string order_fingerprint, sha256;
  bool may_change = false;
  /// Of the run's record: another one was allowed before the run was stopped, and no checkpoint knows it yet.
  std::string recorded_fingerprint = {};
};

/// What follows from the plan and the model of a run that goes on.
/// \throws Error{kBadInput} on data that changed and may not; else it is read from its beginning
void FinishResolving(const TrainSettings& settings, const TrainJobContext& context, const KnownData& known,
                     ChoiceLog* log, ResolvedRun* run) {
  CheckStepDivision(settings, run->plan);
  RequireOwnOptions(settings, ChoicesOf(context), run->plan);
  CheckShards(settings, context, run->plan);
  run->cadence = PlanCadence(settings, run->plan.schedule.total_steps);
  CheckEvaluations(settings, context.options, run->data->evaluated(run->plan.eval_split) != nullptr);
  OpenOwnLoaders(settings, context, log, run);
  const std::string fingerprint = run->stream().fingerprint();
  const bool is_known = fingerprint == known.order_fingerprint;
  if (!is_known && !known.may_change && fingerprint != known.recorded_fingerprint) {
    throw OtherData(settings, *run, known.sha256);
  }
  if (run->resume) {
    TrainerState& state = run->resume->state.trainer;
    const SampleLoaders loaders = LoadersOf(run->loaders);
    if (is_known && !known.may_change) {
      RequireStates(state.loaders, state.origin, loaders);
    } else if (!MismatchOf(state.loaders, loaders).empty()) {
      run->resume->data_changed = true;
      state.loaders = StatesOf(loaders);
    }
  }
  CountHeldOut(settings, run);
}

}  // namespace

OpenedLoaders OpenLoadersApart(const TrainJobContext& context, const ResolvedRun& run,
                               const TrainPlan& plan) {
  return OpenLoaders(context, run, plan,
                     {.workers = 0, .skip_bad_chunks = run.compute.loader.skip_bad_chunks});
}

MemoryRequest MemoryOf(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan) {
  const ComputeChoice& compute = run.compute;
  return {.model = run.model.config,
          .precision = plan.precision,
          .device = compute.device,
          .tuning = plan.tuning,
          .optimizer = plan.optimizer,
          .checkpointing = compute.checkpointing,
          .tbptt = plan.tbptt,
          .offload = compute.offload,
          .kinds = compute.kinds,
          .optimizers = context.optimizers,
          .ranks = plan.ranks,
          .sharding = plan.sharding(),
          .gives_gradients_away = plan.gives_gradients_away(),
          .exchange = {.bucket_bytes = compute.bucket_bytes, .exact_leaves = plan.exact_world},
          .objective_levers = ObjectiveLevers(plan, context.objectives)};
}

void ResolveNewRun(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                   ResolvedRun* run) {
  const ShardSet& set = run->data->set();
  run->model = ChooseModel(context.families.descriptions(), settings, set.header().tokenizer,
                           run->compute.device.is_cuda());
  log->Announce(run->data->WeighSets(settings.data_weights));
  std::optional<DocumentSplit> split;
  RequireSplitOfSeed(settings);
  if (!settings.eval_split.empty()) {
    split = ParseDocumentSplit(settings.eval_split, settings.eval_split_seed.value_or(0), &set,
                               settings.skip_bad_chunks > 0);
  }
  PlannedRun planned = Plan(settings, context, split, *run);
  if (settings.find_batch) {
    planned = Plan(FindBatch(settings, context, planned.plan, *run, log), context, split, *run);
  }
  run->plan = planned.plan;
  CheckStepDivision(settings, run->plan);
  CheckShards(settings, context, run->plan);
  run->cadence = PlanCadence(settings, run->plan.schedule.total_steps);
  CountHeldOut(settings, run);
  run->epoch = planned.epoch;
  // Where the data is read many times, reading it once more to say so is cheap.
  const double most_tokens = static_cast<double>(run->plan.schedule.total_steps) *
                             static_cast<double>(run->plan.samples_per_step()) *
                             static_cast<double>(run->plan.sequence_tokens);
  if (!run->epoch && most_tokens > kManyPasses * static_cast<double>(set.totals().tokens)) {
    run->epoch = CountEpoch(context, run->plan, *run);
  }
  CheckAdapters(settings, context, *run);
  for (const RecordKind records : run->data->records()) {
    const TakenRecords* taken = context.objectives.Find(run->plan.objective).description.FindRecords(records);
    if (taken == nullptr || taken->warning.empty()) continue;
    WarnOnce(context, DataNames(settings) + ": " + taken->warning);
  }
  OpenOwnLoaders(settings, context, log, run);
  WarnOfUnread(context, *run);
  if (run->model.start) WarnOfOtherEmbedding(settings, context, *run);
  if (run->model.reason) run->opening_reasons.push_back(*run->model.reason);
  run->opening_reasons.insert(run->opening_reasons.end(), planned.reasons.begin(), planned.reasons.end());
}

void ResolveResumedRun(const TrainSettings& settings, const TrainJobContext& context,
                       const std::string& checkpoint, const RunRecord* record, ChoiceLog* log,
                       ResolvedRun* run) {
  ResumePoint& resume = run->resume.emplace();
  resume.checkpoint = checkpoint;
  resume.watch.emplace(checkpoint);
  resume.state = ReadTrainState(checkpoint + "/" + kStateFileName, StateTensors::kMapped);
  run->plan = resume.state.plan;
  if (record != nullptr) {
    run->parent = record->parent;
    // A run that was extended may have been stopped before its next checkpoint.
    if (record->plan.schedule.total_steps > run->plan.schedule.total_steps) {
      run->plan.schedule.total_steps = record->plan.schedule.total_steps;
      run->plan.length_rule = record->plan.length_rule;
    }
  }
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  resume.stored_options = PlanAsOptions(run->plan);
  log->Announce(run->data->WeighSets(run->plan.data_weights));
  resume.warnings = Reconcile(settings, context, resume.state.trainer.step, run);
  OpenModelOf(settings, context, checkpoint, run);
  CheckSameModel(settings, context, *run);
  // The same data in another order is what no leave was given for: the state is false.
  const bool was_changed = record != nullptr && record->data_sha256 != resume.state.data_sha256;
  const std::string recorded_fingerprint = was_changed ? record->order_fingerprint : "";
  FinishResolving(settings, context,
                  {.order_fingerprint = resume.state.trainer.data().order_fingerprint,
                   .sha256 = resume.state.data_sha256,
                   .may_change = settings.allow_data_change,
                   .recorded_fingerprint = recorded_fingerprint},
                  log, run);
}

void ResolveBegunRun(const TrainSettings& settings, const TrainJobContext& context, const RunRecord& record,
                     ChoiceLog* log, ResolvedRun* run) {
  run->plan = record.plan;
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  log->Announce(run->data->WeighSets(run->plan.data_weights));
  for (const std::string& note : Reconcile(settings, context, 0, run)) WarnOnce(context, note);
  if (!settings.init.empty() || !settings.adapter.empty()) {
    TrainSettings start = settings;
    start.model.clear();
    run->model = ChooseModel(context.families.descriptions(), start, run->data->set().header().tokenizer,
                             run->compute.device.is_cuda());
  }
  run->model.config =
      DecodeConfigJson(context.families.descriptions(), record.model.dump(), "the run's record");
  run->model.name = record.model_name;
  CheckSameModel(settings, context, *run);
  CheckAdapters(settings, context, *run);
  FinishResolving(settings, context,
                  {.order_fingerprint = record.order_fingerprint,
                   .sha256 = record.data_sha256,
                   .may_change = settings.allow_data_change},
                  log, run);
}

void ResolveBranchedRun(const TrainSettings& settings, const TrainJobContext& context,
                        const BranchPoint& branch, ChoiceLog* log, ResolvedRun* run) {
  ResumePoint& resume = run->resume.emplace();
  resume.checkpoint = branch.parent.checkpoint;
  resume.of_parent = true;
  resume.watch.emplace(resume.checkpoint);
  resume.state = ReadTrainState(resume.checkpoint + "/" + kStateFileName, StateTensors::kMapped);
  run->parent = branch.parent;
  run->parent->step = resume.state.trainer.step;
  run->plan = branch.plan.value_or(resume.state.plan);
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  resume.stored_options = PlanAsOptions(resume.state.plan);
  if (!settings.data_weights.empty()) run->plan.data_weights = settings.data_weights;
  log->Announce(run->data->WeighSets(run->plan.data_weights));
  OpenModelOf(settings, context, branch.parent.checkpoint, run);
  run->model.name = "branch";
  CheckSameModel(settings, context, *run);
  if (!branch.plan) {
    RelocateFilesOfParent(context, resume.checkpoint, &run->plan);
    const PlannedRun planned =
        PlanBranch(settings, FactsOf(settings, context, *run), resume.state.trainer.step, run->plan);
    run->plan = planned.plan;
    run->opening_reasons = planned.reasons;
  } else {
    for (const std::string& note : TakeRanks(context.world->size(), &run->plan)) WarnOnce(context, note);
  }
  if (run->plan.precision != resume.state.plan.precision) {
    resume.state.trainer.scaler = LossScaler(run->plan.precision == Precision::kFp16).state();
  }
  FinishResolving(settings, context,
                  {.order_fingerprint = resume.state.trainer.data().order_fingerprint,
                   .sha256 = resume.state.data_sha256,
                   .may_change = true},
                  log, run);
}

std::vector<std::string> TrapsOf(const TrainSettings& settings, const ResolvedRun& run, int64_t preset_batch,
                                 int64_t preset_accum) {
  const TrainPlan& plan = run.plan;
  RunSetup setup = {.total_steps = plan.schedule.total_steps,
                    .warmup_steps = plan.schedule.warmup_steps,
                    .peak_lr = plan.schedule.peak_lr,
                    .warmup_is_wanted = settings.warmup || settings.warmup_ratio,
                    .batch = plan.batch,
                    .accum = plan.accum,
                    .ranks = plan.ranks,
                    .log_every = settings.log_every,
                    .save_every = run.cadence.save_every,
                    .eval_every = settings.eval_every,
                    .has_eval_data = run.data->evaluated(plan.eval_split) != nullptr,
                    .resume = run.resume && run.resume->state.trainer.step > 0,
                    .save_model_only = settings.save_model_only,
                    .fp16_on_cpu = plan.precision == Precision::kFp16 && run.compute.device.is_cpu(),
                    .emulates_bf16 = plan.precision == Precision::kBf16 &&
                                     !HasFastProducts(Precision::kBf16, run.compute.device),
                    .data_tokens = run.data->set().totals().tokens,
                    .sequence_tokens = plan.sequence_tokens,
                    .preset = settings.preset,
                    .preset_batch = preset_batch,
                    .preset_accum = preset_accum};
  // A tenth of the run is nobody's choice, and short runs have none.
  if (settings.save_every.empty()) setup.save_every = {};
  if (run.epoch) {
    setup.epoch_samples = static_cast<int64_t>(run.epoch->samples);
    setup.epoch_tokens = run.epoch->tokens;
    setup.passes = static_cast<double>(plan.schedule.total_steps) *
                   static_cast<double>(plan.samples_per_step()) / static_cast<double>(run.epoch->samples);
  }
  return FindTraps(setup);
}

}  // namespace trainwright
