#include "lib/train/train_job.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_restore.h"
#include "lib/checkpoint/finish_run.h"
#include "lib/checkpoint/parent_checkpoint.h"
#include "lib/checkpoint/run_completion.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/formats/tensorboard.h"
#include "lib/io/byte_sink.h"
#include "lib/run/branch_reference.h"
#include "lib/run/metrics_log.h"
#include "lib/run/plan_codec.h"
#include "lib/run/remembered_options.h"
#include "lib/run/remembered_run.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_record.h"
#include "lib/run/settings_check.h"
#include "lib/spec/config_json.h"
#include "lib/spec/product_choices.h"
#include "lib/train/compile_choice.h"
#include "lib/train/device_choice.h"
#include "lib/train/plan_objective.h"
#include "lib/train/resolved_run.h"
#include "lib/train/run_memory.h"
#include "lib/train/run_preview.h"
#include "lib/train/session.h"
#include "lib/train/stored_run.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Whether the run is only told of: everything is decided, nothing written.
bool OnlyTells(const TrainSettings& settings) {
  return settings.dry_run || settings.explain;
}

/// The folder that is resumed; nullopt for a new run.
std::optional<std::string> FolderToResume(const TrainSettings& settings, const World& world) {
  if (!settings.resume) return std::nullopt;
  if (!settings.out.empty()) return settings.out;
  if (world.size() > 1) {
    throw Error(ErrorCode::kUsage, "--resume", "does not say which run, and each rank would look by itself",
                "", "name its folder with --out");
  }
  const auto newest = RunDirectory::Newest(kRunsFolder);
  if (!newest) {
    throw Error(ErrorCode::kUsage, "--resume", std::string("no run in ") + kRunsFolder + "/ to continue", "",
                "name its folder with --out, or leave out --resume to start one");
  }
  LogInfo("resuming " + *newest + ", the newest run");
  return newest;
}

/// The folder of a new run, with nothing in it that tells of another.
std::unique_ptr<RunDirectory> MakeRunDirectory(const TrainSettings& settings, const ResolvedRun& run,
                                               std::unique_ptr<RunDirectory> directory) {
  if (!directory && settings.out.empty()) {
    directory = std::make_unique<RunDirectory>(RunDirectory::CreateNumbered(kRunsFolder, run.model.name));
  } else if (!directory) {
    directory = std::make_unique<RunDirectory>(settings.out);
    if (!directory->CheckpointSteps().empty()) {
      throw Error(ErrorCode::kUsage, settings.out, "already holds a run with checkpoints", "",
                  "continue it with --resume, or choose another folder with --out");
    }
  }
  RemoveRunCompletion(*directory);
  std::error_code ignored;  // mostly there is none
  fs::remove(directory->trace_path(), ignored);
  fs::remove(directory->path() + "/" + kProductChoicesFile, ignored);
  CutMetrics(directory->metrics_path(), -1);
  CutEventFiles(directory->tensorboard_path(), -1);
  LogInfo("run " + directory->path());
  return directory;
}

/// Of a run whose last step is taken: there is nothing left but what a killed process left undone, and
/// copies.
int FinishComplete(const TrainSettings& settings, const ResumePoint& resume, const std::string& reason,
                   World* world, RunDirectory* directory) {
  const TrainerState& state = resume.state.trainer;
  const RunEnd end = {.step = state.step, .tokens_seen = state.tokens_seen, .reason = reason};
  const int status = FinishRun(end, settings, directory, [world] { world->Look(); });
  LogInfo("the run is complete: " + std::to_string(state.step) + " steps, " + resume.checkpoint);
  return status;
}

/// Options that say what a run is: with one of them --resume may begin a run where there is none.
bool SaysWhatTheRunIs(const std::vector<OptionValue>& options) {
  std::set<std::string> keys = KeysOfThePlan();
  keys.insert({"data", "init", "adapter", "branch-from"});
  return std::any_of(options.begin(), options.end(), [&](const OptionValue& option) {
    return option.origin > OptionOrigin::kDefault && keys.contains(option.key);
  });
}

/// \throws Error{kUsage} where the user names other weights to start from than the run did
void CheckSameStart(const TrainSettings& settings, const RunRecord& record) {
  if (settings.init.empty() || record.plan.tuning.lora || settings.init == record.init) return;
  const fs::path begun = fs::path(record.working_directory) / record.init;
  if (!record.init.empty() && fs::absolute(settings.init).lexically_normal() == begun.lexically_normal())
    return;
  throw Error(ErrorCode::kUsage, "--init",
              settings.init + " is not what the run was started from" +
                  (record.init.empty() ? ", which was random weights" : ", " + record.init),
              "", "leave out --init: a run that is resumed has its own weights");
}

/// \throws Error{kUsage} where the user names an adapter or a parent that the run did not begin with
void CheckSameOrigin(const TrainSettings& settings, const RunRecord& record) {
  if (!settings.adapter.empty() && !record.plan.tuning.lora) {
    throw Error(ErrorCode::kUsage, "--adapter", "has no meaning for this run, which trains no adapter", "",
                "leave it out, or start another run with --out");
  }
  if (settings.branch_from.empty()) return;
  const BranchReference asked = ParseBranchReference(settings.branch_from);
  const auto place = [&](const std::string& path) {
    return (fs::path(record.working_directory) / path).lexically_normal();
  };
  const auto& parent = record.parent;
  if (parent && (!asked.step || *asked.step == parent->step) &&
      (fs::absolute(asked.run).lexically_normal() == place(parent->run) ||
       place(asked.run) == place(parent->run)))
    return;
  throw Error(ErrorCode::kUsage, "--branch-from",
              settings.branch_from + " is not what the run began with" +
                  (parent ? ", " + parent->run + "@" + std::to_string(parent->step) : ""),
              "", "leave out --resume to begin a branch, and choose another folder with --out");
}

/// A training run from its settings to its exit status, in the order of what may fail.
class TrainJob {
 public:
  TrainJob(const TrainSettings& settings, const TrainJobContext& context)
      : settings_(settings), context_(context), log_(settings.explain) {}

  int Run(nlohmann::ordered_json* summary) {
    DoAlike(context_.world, [&] { OpenInput(); });
    if (const std::string checkpoint = FindCheckpoint(); !checkpoint.empty()) {
      DoAlike(context_.world, [&] {
        ResolveResumedRun(settings_, context_, checkpoint, record_ ? &*record_ : nullptr, &log_, &run_);
      });
      RequireSameRun();
      return Resume(summary);
    }
    run_.device_share_bytes = LeastDeviceShare(context_, run_.compute.device);
    if (settings_.find_batch) {
      ResolveStart();  // on the way the ranks agree on what they found
    } else {
      DoAlike(context_.world, [&] { ResolveStart(); });
    }
    // What goes on from something has what that had.
    if (!record_ && !run_.resume) ChooseHeadSlices(settings_, context_, &log_, &run_);
    RequireSameRun();
    return Start(summary);
  }
  /// What the job is at, for when memory runs out.
  MemoryUser memory_user() const {
    return DescribeMemoryUser(settings_, context_, run_,
                              session_ ? std::optional(session_->point()) : std::nullopt);
  }

 private:
  bool is_writer() const { return context_.world->is_writer(); }
  /// Has the writer do what it alone may. The others wait for it, and where it fails all do.
  /// \param work returns a number of at least 0
  /// \returns the number, on all ranks
  /// \throws as ShareEnd
  int64_t AsWriter(const std::function<int64_t()>& work) const {
    return trainwright::AsWriter(context_.world, work);
  }

  /// Everything that can be wrong with the input is found before a run directory is made.
  void OpenInput() {
    folder_ = FolderToResume(settings_, *context_.world);
    OpenRecord();
    // A run that is resumed may hold out what it evaluates on.
    const bool begins = !settings_.resume && settings_.branch_from.empty();
    if (begins) {
      CheckEvaluations(settings_, context_.options,
                       !settings_.eval_data.empty() || !settings_.eval_split.empty());
    }
    run_.compute = ChooseCompute(settings_, context_.process);
    run_.data = std::make_unique<TrainingData>(settings_);
    ChooseLoader(settings_, run_.data->set().totals().tokens, &log_, &run_.compute);
  }

  /// What the folder remembers of its run.
  void OpenRecord() {
    if (folder_) record_ = ReadRunRecord(*folder_ + "/" + kRunRecordFile);
    if (!record_) {
      const bool has_own = folder_ && ReadOptionsOfRun(*folder_);
      if (!settings_.branch_from.empty() && !has_own) RelocateOptionsOfParent();
      return;
    }
    CheckSameStart(settings_, *record_);
    CheckSameOrigin(settings_, *record_);
    RelocatePaths(context_.options, record_->working_directory, &settings_);
    run_.begun_in = record_->working_directory;
  }

  /// Of a branch that begins: the relative paths of its parent's options start from where that was begun.
  void RelocateOptionsOfParent() {
    const std::string run = RunOf(ParseBranchReference(settings_.branch_from));
    if (const std::optional<RunRecord> parent = ReadRunRecord(run + "/" + kRunRecordFile)) {
      RelocatePaths(context_.options, parent->working_directory, &settings_);
    }
    if (is_writer() && fs::exists(run) && !ReadOptionsOfRun(run)) {
      LogInfo(run + " remembers no options of a run: those that are not given have their defaults");
    }
  }

  /// The checkpoint that the run goes on from, which the writer chooses; empty: from the beginning.
  std::string FindCheckpoint() {
    if (!folder_) return "";
    std::string found;
    const int64_t next = AsWriter([&]() -> int64_t {
      if (!fs::exists(*folder_)) {
        if (OnlyTells(settings_)) return 0;
        // Before a folder of a mistyped name is made; a copy may be continued in a new one.
        if (settings_.copy_to.empty()) RequireRunOrOptions();
      }
      directory_ = std::make_unique<RunDirectory>(*folder_);
      found = OnlyTells(settings_) ? NewestGoodCheckpoint(directory_->path())
                                   : NewestCheckpointOrCopy(directory_.get(), settings_.copy_to);
      return RunDirectory::StepOfCheckpoint(found).value_or(-1) + 1;
    });
    return is_writer() || next == 0 ? found : RunDirectory::CheckpointPathIn(*folder_, next - 1);
  }

  /// \throws Error{kUsage} where the folder has no run, and the options do not say what one would be
  void RequireRunOrOptions() const {
    if (record_ || SaysWhatTheRunIs(context_.options)) return;
    throw Error(ErrorCode::kUsage, *folder_, "holds no run to continue", "",
                "leave out --resume to start one, or add the options of the run that is to begin there");
  }

  /// Of a run without a checkpoint of its own.
  void ResolveStart() {
    if (record_) {
      LogInfo(*folder_ + " holds no checkpoint yet: starting from the beginning");
      if (record_->parent) {
        RequireParentCheckpoint(*record_->parent);
        Branch({.parent = *record_->parent, .plan = record_->plan});
      } else {
        ResolveBegunRun(settings_, context_, *record_, &log_, &run_);
      }
      return;
    }
    if (folder_) RequireRunOrOptions();
    if (!settings_.branch_from.empty()) {
      Branch({.parent = FindParentCheckpoint(ParseBranchReference(settings_.branch_from)), .plan = {}});
      return;
    }
    CheckEvaluations(settings_, context_.options,
                     run_.data->eval_set() != nullptr || !settings_.eval_split.empty());
    ResolveNewRun(settings_, context_, &log_, &run_);
  }

  /// What the ranks must have in common to make one run; what else differs, each has for itself.
  /// \throws as RequireEqual
  void RequireSameRun() const {
    if (context_.world->size() == 1) return;
    const auto option = [](const auto& value) { return nlohmann::json(value).dump(); };
    Facts facts = {{"sha256 of the data", HexEncode(run_.data->set().content_sha256())},
                   {"sha256 of the model's configuration",
                    HexEncode(Sha256Of(AsBytes(EncodeConfigJson(run_.model.config))))},
                   {"--save-every", option(settings_.save_every)},
                   {"--eval-every", option(settings_.eval_every.value_or(-1))},
                   {"--eval-tokens", option(settings_.eval_tokens.value_or(-1))},
                   {"--early-stop", option(settings_.early_stop.value_or(-1))},
                   {"--log-every", option(LogEvery(settings_, run_.compute.device))},
                   {"--keep-best", option(settings_.keep_best)},
                   {"--ddp-bucket-mb", option(settings_.ddp_bucket_mb)},
                   {"--auto-oom", option(settings_.auto_oom)},
                   {"--attn-backend", option(settings_.attn_backend)},
                   {"--tf32", option(settings_.tf32)},
                   {"--residual-stream", option(settings_.residual_stream)},
                   {"--compile", option(settings_.compile)},
                   {"--deterministic", option(settings_.deterministic)},
                   {"--ten-scan", option(settings_.ten_scan)}};
    if (const ShardSet* evaluated = run_.data->evaluated(run_.plan.eval_split)) {
      facts["sha256 of the evaluation data"] = HexEncode(evaluated->content_sha256());
    }
    if (run_.stream().numbered()) {  // what is taken of the data a file of this machine may say
      for (const auto& [name, loader] : run_.loaders) {
        facts["sha256 of the order of loader \"" + name + "\""] = loader->fingerprint();
      }
    }
    const nlohmann::ordered_json plan = PlanAsOptions(run_.plan);
    for (const auto& [name, value] : plan.items()) facts["--" + name] = value.dump();
    RequireEqual(context_.world, facts);
  }

  void Branch(const BranchPoint& branch) {
    ResolveBranchedRun(settings_, context_, branch, &log_, &run_);
    LogInfo("branching from " + run_.parent->checkpoint + ", step " + std::to_string(run_.parent->step) +
            " of " + std::to_string(run_.plan.schedule.total_steps));
  }

  int Preview(nlohmann::ordered_json* summary) {
    return static_cast<int>(AsWriter([&] {
      return PreviewRun(settings_, context_, log_, directory_ ? directory_->path() : "", run_, summary);
    }));
  }

  /// Of a new run whose bits are to be those of other worlds' runs, too.
  void HintAtThreads() const {
    if (!is_writer() || run_.plan.exact_world == 0 || settings_.threads > 0) return;
    LogHint("the bits of --exact-world depend on the threads of a rank: give --threads " +
                std::to_string(run_.compute.identity.threads) +
                " to a run of another world that is to be this one",
            LogLevel::kInfo);
  }

  void RestoreData() {
    const TrainerState& state = run_.resume->state.trainer;
    RestoreLoaders(state.loaders, state.origin, LoadersOf(run_.loaders));
  }

  int Start(nlohmann::ordered_json* summary) {
    RequireCompile(run_, *ObjectiveOf(run_.plan, context_.objectives));
    if (OnlyTells(settings_)) {
      log_.Announce(run_.opening_reasons);
      for (const std::string& trap : TrapsOf(settings_, context_, run_)) {
        if (is_writer()) LogWarning(trap);
      }
      if (run_.resume) RestoreData();
      return Preview(summary);
    }
    if (!record_ && !run_.resume) ChooseAttention(settings_, context_, &log_, &run_);
    AsWriter([&] {
      directory_ = MakeRunDirectory(settings_, run_, std::move(directory_));
      Remember(run_.model.name);
      return 0;
    });
    log_.Announce(run_.opening_reasons);
    HintAtThreads();
    return Train(summary);
  }

  int Resume(nlohmann::ordered_json* summary) {
    RequireCompile(run_, *ObjectiveOf(run_.plan, context_.objectives));
    const ResumePoint& resume = *run_.resume;
    if (OnlyTells(settings_)) {
      RestoreData();
      return Preview(summary);
    }
    const int64_t step = resume.state.trainer.step, total_steps = run_.plan.schedule.total_steps;
    LogInfo("run " + (directory_ ? directory_->path() : *folder_) + ": continuing at step " +
            std::to_string(step) + " of " + std::to_string(total_steps));
    const TrainingHistory history = HistoryOf(resume.checkpoint);
    const bool complete = step >= total_steps && !LacksLastEvaluation(history, step);
    const bool stops_early = !complete && history.StopsEarly(settings_.early_stop);
    if (complete || stops_early) {
      *summary = {
          {"steps", step}, {"tokens", resume.state.trainer.tokens_seen}, {"checkpoint", resume.checkpoint}};
      DoAlike(context_.world, [&] {
        if (stops_early) RequireSameLength();
        RequireSameData();
      });
      return static_cast<int>(AsWriter([&] {
        if (record_) Remember(record_->model_name);
        return FinishComplete(settings_, resume, complete ? kCompleteEnd : kEarlyStop, context_.world,
                              directory_.get());
      }));
    }
    AsWriter([&] {
      TakeUpRun(step, /*evaluated=*/!LacksEvaluation(run_, history, step), directory_.get());
      if (record_) Remember(record_->model_name);
      return 0;
    });
    return Train(summary);
  }

  /// \throws Error{kUsage} where a run that --early-stop ended is to become longer
  void RequireSameLength() const {
    if (!record_ || run_.plan.schedule.total_steps <= record_->plan.schedule.total_steps) return;
    throw Error(ErrorCode::kUsage, "--early-stop",
                "ended the run at step " + std::to_string(run_.resume->state.trainer.step) +
                    ", so a greater length adds nothing",
                "",
                "give a greater --early-stop than " + std::to_string(settings_.early_stop.value_or(1)) +
                    ", or begin another run with --branch-from");
  }

  /// \throws Error{kUsage} where a run that has ended is given other data, which no step would read
  void RequireSameData() const {
    if (!run_.resume->data_changed) return;
    throw Error(ErrorCode::kUsage, "--data",
                DataNames(settings_) + " is not the run's data, and the run has ended: no step would read it",
                "", "add a greater --steps to make the run longer, or begin another with --branch-from");
  }

  TrainingHistory HistoryOf(const std::string& checkpoint) const {
    TrainingHistory history(EvaluationNameOf(settings_, run_), run_.cadence.eval_every);
    history.Restore(ReadCheckpointMetadata(checkpoint));
    return history;
  }

  /// Whether the process that took the last step was stopped before it had evaluated. Of a run that did not
  /// evaluate until then, nothing is lacking: what is asked for when it has ended begins with more steps.
  bool LacksLastEvaluation(const TrainingHistory& history, int64_t step) const {
    if (run_.data->evaluated(run_.plan.eval_split) == nullptr) return false;
    return history.evaluation_is_left(step) || (history.has_evaluations() && !history.evaluation_nats(step));
  }

  /// Writes what a resumed run needs: before the first step, and where this process was given other options.
  /// A run that these make remember something else is not complete any more.
  void Remember(const std::string& model_name) const {
    const std::string model = settings_.model.empty() ? model_name : settings_.model;
    const ShardSet& set = run_.data->set();
    const RunRecord record = {
        .plan = run_.plan,
        .model_name = model,
        .model = nlohmann::ordered_json::parse(EncodeConfigJson(run_.model.config)),
        .init = record_ ? record_->init : settings_.init,
        .data_sha256 = HexEncode(set.content_sha256()),
        .order_fingerprint = run_.stream().fingerprint(),
        .working_directory = record_ ? record_->working_directory : fs::current_path().string(),
        .parent = run_.parent,
        .choices = run_.compute.identity.choices};
    const std::string& run = directory_->path();
    try {
      const std::string options = RememberOptions(settings_, context_.options, record);
      if (!record_) {
        BeginRemembering(run, record, options);
      } else if (!IsRemembered(run, record, options)) {
        RemoveRunCompletion(*directory_);  // until what is asked for now is done
        GoOnRemembering(run, record, options);
      }
    } catch (const nlohmann::json::type_error&) {
      throw Error(ErrorCode::kUsage, run, "cannot remember a path of its options that is not UTF-8", "",
                  "give the data, or the folder that train is started in, another name");
    }
  }

  /// The checkpoint of a branch each rank finds by itself, in a run that may be training.
  /// \throws Error{kIo} where they found different ones
  void RequireSameStep() const {
    const int64_t step = run_.resume ? run_.resume->state.trainer.step : 0;
    const std::vector<int64_t> agreed = context_.world->Agree({step, -step});
    if (agreed[0] == -agreed[1]) return;
    const Error error(
        ErrorCode::kIo, "ranks",
        "go on from different steps: from " + std::to_string(-agreed[1]) + " to " + std::to_string(agreed[0]),
        "", "name the step: --branch-from RUN@STEP");
    if (is_writer()) throw error;
    throw CommonError(error);
  }

  int Train(nlohmann::ordered_json* summary) {
    RequireSameStep();
    DoAlike(context_.world, [&] {
      session_ = std::make_unique<Session>(settings_, context_, context_.world, &run_, std::move(directory_));
    });
    const int status = session_->Run();
    *summary = session_->Summary();
    return status;
  }

  TrainSettings settings_;
  const TrainJobContext& context_;
  ChoiceLog log_;
  std::optional<std::string> folder_;  ///< that is resumed
  std::optional<RunRecord> record_;    ///< of the run that is resumed
  ResolvedRun run_;
  std::unique_ptr<RunDirectory> directory_;  ///< null where this rank writes nothing
  std::unique_ptr<Session> session_;
};

}  // namespace

int RunTraining(const TrainSettings& settings, const TrainJobContext& context,
                nlohmann::ordered_json* summary) {
  CheckTrainSettings(settings);
  CheckScheduleOptions(settings, context.options);
  TrainJob job(settings, context);
  return WithMemoryErrors([&] { return job.memory_user(); }, [&] { return job.Run(summary); });
}

}  // namespace trainwright
