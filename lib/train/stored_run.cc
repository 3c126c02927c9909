#include "lib/train/stored_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/device/accelerator.h"
#include "lib/model/hf_folder.h"
#include "lib/optim/loss_scaler.h"
#include "lib/run/branch_plan.h"
#include "lib/run/plan_codec.h"
#include "lib/run/remembered_options.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_extension.h"
#include "lib/run/settings_check.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_config.h"
#include "lib/spec/schedule.h"
#include "lib/train/compute_choice.h"
#include "lib/train/device_choice.h"
#include "lib/train/resolve_steps.h"

namespace trainwright {
namespace {

/// \throws Error{kUsage} where the settings name another model than the run's
void CheckSameModel(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  RequireAskedShape(context.families.descriptions(), settings, run.model.config, "the run's model");
  if (settings.model.empty()) return;
  const ModelConfig asked = ChooseModel(context.families.descriptions(), settings,
                                        run.data->set().header().tokenizer, IsAccelerator(run.compute.device))
                                .config;
  // Older versions did not keep the rest.
  if (EncodeConfigJson(ComputedPart(asked)) != EncodeConfigJson(ComputedPart(run.model.config))) {
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
      "give the run's data by --data, or continue with this data from its beginning by --allow-data-change");
}

/// The length, where another is asked for, and what else of the settings differs from the plan. The run has
/// its model.
/// \returns what the user should know
std::vector<std::string> Reconcile(const TrainSettings& settings, const TrainJobContext& context,
                                   int64_t steps_taken, ResolvedRun* run) {
  TakeOwnFiles(settings, &run->plan);
  const auto count_epoch = [&](const TrainPlan& plan) { return CountEpoch(context, plan, *run); };
  std::vector<std::string> notes = ExtendRun(settings, count_epoch, steps_taken, &run->plan);
  const TrainSettings asked = InWordsOfPlan(settings, run->plan, run->model.config);
  for (std::string& note : ReconcilePlan(asked, &run->plan, context.world->size())) {
    notes.push_back(std::move(note));
  }
  return notes;
}

/// The model of a checkpoint, or the base that its adapters were trained on.
void OpenModelOf(const TrainSettings& settings, const TrainJobContext& context, const std::string& checkpoint,
                 ResolvedRun* run) {
  if (run->plan.tuning.lora) {
    TrainSettings given = settings;
    // Of a base that the run remembers, and that was moved, the checkpoint knows where it may be.
    if (IsFromRun(context.options, "init") && !std::filesystem::exists(given.init)) given.init.clear();
    run->model = ChooseBase(context.families.descriptions(), given, checkpoint,
                            run->data->set().header().tokenizer, IsAccelerator(run->compute.device));
  } else {
    run->model.config = ReadHfConfig(context.families.descriptions(), checkpoint);
  }
}

/// What changes no weights of the base's config.json, as a run of adapters was begun with it: older versions
/// kept one end of samples, and neither dropout nor the deviation of initial weights. A run that is complete
/// stays so, and its checkpoints tell of one model.
void TakeRecordedConfig(const TrainJobContext& context, const RunRecord& record, ResolvedRun* run) {
  const ModelConfig begun =
      DecodeConfigJson(context.families.descriptions(), record.model.dump(), "the run's record");
  run->model.config.eos_id = begun.eos_id;
  run->model.config.more_eos_ids = begun.more_eos_ids;
  run->model.config.initializer_range = begun.initializer_range;
  run->model.config.dropouts = begun.dropouts;
}

/// Relative paths in a parent's plan start from where the parent was begun.
void RelocateFilesOfParent(const TrainJobContext& context, const std::string& checkpoint, TrainPlan* plan) {
  const std::vector<OwnOption>& own = context.objectives.Find(plan->objective).description.own;
  const bool has_files = std::any_of(own.begin(), own.end(), [&](const OwnOption& option) {
    const auto found = plan->objective_own.find(option.name);
    return option.names_file() && found != plan->objective_own.end() && !found->second.ToString().empty();
  });
  const std::optional<std::string> run = RunOfCheckpoint(checkpoint);
  if (!has_files || !run) return;
  if (const std::optional<RunRecord> record = ReadRunRecord(*run + "/" + kRunRecordFile)) {
    TakeRecordedFiles(own, *record, plan);
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
  RequireResidualStream(settings, run->plan, run->model.config);
  CheckStepDivision(settings, run->plan);
  RequireOwnOptions(settings, ChoicesOf(context), run->plan);
  CheckShards(settings, context, run->plan);
  TakeFp8(context, run);
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
    // A run that was extended, or divided its steps otherwise, may have been stopped before its next
    // checkpoint.
    if (record->plan.schedule.total_steps > run->plan.schedule.total_steps) {
      run->plan.schedule = record->plan.schedule;
      run->plan.shares = record->plan.shares;
      run->plan.length_rule = record->plan.length_rule;
    }
    resume.warnings = TakeRecordedDivision(record->plan, &run->plan);
  }
  // The record knows what was timed, too.
  DeviceChoices stored = resume.state.compute.choices;
  if (record != nullptr && record->choices.of_gpu()) {
    stored = record->choices;
    if (stored.products.empty()) stored.products = resume.state.compute.choices.products;
  }
  if (record != nullptr) stored.cpu_gemms = record->choices.cpu_gemms;
  TakeStoredChoices(settings, stored, run);
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  if (record != nullptr) {
    TakeRecordedFiles(context.objectives.Find(run->plan.objective).description.own, *record, &run->plan);
  }
  resume.stored_options = PlanAsOptions(run->plan);
  log->Announce(run->data->WeighSets(run->plan.data_weights));
  OpenModelOf(settings, context, checkpoint, run);
  if (record != nullptr && run->plan.tuning.lora) TakeRecordedConfig(context, *record, run);
  for (std::string& warning : Reconcile(settings, context, resume.state.trainer.step, run)) {
    resume.warnings.push_back(std::move(warning));
  }
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
  TakeStoredChoices(settings, record.choices, run);
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  log->Announce(run->data->WeighSets(run->plan.data_weights));
  if (!settings.init.empty() || !settings.adapter.empty()) {
    TrainSettings start = settings;
    start.model.clear();
    run->model = ChooseModel(context.families.descriptions(), start, run->data->set().header().tokenizer,
                             IsAccelerator(run->compute.device));
  }
  run->model.config =
      DecodeConfigJson(context.families.descriptions(), record.model.dump(), "the run's record");
  run->model.name = record.model_name;
  for (const std::string& note : Reconcile(settings, context, 0, run)) WarnOnce(context, note);
  CheckSameModel(settings, context, *run);
  CheckTuning(settings, context, *run);
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
  TakeStoredChoices(settings, resume.state.compute.choices, run);
  CompleteStoredPlan(ChoicesOf(context), &run->plan);
  resume.stored_options = PlanAsOptions(resume.state.plan);
  if (!branch.plan) run->data->RequireWeighable(settings.data_weights);
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
    TrainSettings with_schedule = settings;  // which a branch need not name
    with_schedule.schedule = ScheduleKindName(run->plan.schedule.kind);
    CheckScheduleOptions(with_schedule, context.options);
    run->opening_reasons = planned.reasons;
  } else {
    for (const std::string& note : TakeRanks(context.world->size(), &run->plan)) WarnOnce(context, note);
  }
  if (run->plan.precision != resume.state.plan.precision) {
    resume.state.trainer.scaler = LossScaler(run->plan.precision == Precision::kFp16).state();
  }
  CheckTuning(settings, context, *run);
  FinishResolving(settings, context,
                  {.order_fingerprint = resume.state.trainer.data().order_fingerprint,
                   .sha256 = resume.state.data_sha256,
                   .may_change = true},
                  log, run);
}

}  // namespace trainwright
