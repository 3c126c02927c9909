#include "lib/train/train_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/device/determinism.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/device/memory_cap.h"
#include "lib/device/memory_error.h"
#include "lib/device/offload_stack.h"
#include "lib/eval/checkpoint.h"
#include "lib/eval/perplexity.h"
#include "lib/formats/shard_set.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/process_memory.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/mixture_weights.h"
#include "lib/loading/sample_stream.h"
#include "lib/loading/spooled_shard_set.h"
#include "lib/model/hf_folder.h"
#include "lib/model/language_model.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
#include "lib/nn/peak_rate.h"
#include "lib/probe/batch_search.h"
#include "lib/run/async_save.h"
#include "lib/run/checkpoint_copier.h"
#include "lib/run/checkpoint_metadata.h"
#include "lib/run/explanation.h"
#include "lib/run/loader_plan.h"
#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_planner.h"
#include "lib/run/run_traps.h"
#include "lib/run/save_interval.h"
#include "lib/run/training_history.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_config.h"
#include "lib/train/checkpoint_restore.h"
#include "lib/train/checkpoint_writer.h"
#include "lib/train/checkpointer.h"
#include "lib/train/dry_run.h"
#include "lib/train/run_recorder.h"
#include "lib/train/start_model.h"
#include "lib/train/trainer.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kRunsFolder[] = "runs";
constexpr char kBaseFolder[] = "base";  // in a run: of adapters on random weights
constexpr char kCpuPreset[] = "llama-1m";
constexpr char kGpuPreset[] = "llama-125m";
constexpr double kManyPasses = 16;  // over the data
constexpr double kFindBatchTimeS = 20;
constexpr int kDoesNotFit = 1;  // the exit status of an answer that is no
constexpr char kMakeShardsHint[] =
    "make shards first: pretokenize FILE... | pack --chunk 32768 -o shards/   (train reads shards/ unless "
    "--data names "
    "another place)";

std::string TemporaryFolder() {
  const char* temporary = std::getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
}

std::string SpoolFolder(const TrainSettings& settings) {
  return settings.cache_dir.empty() ? TemporaryFolder() : settings.cache_dir;
}

std::unique_ptr<ShardSet> OpenShards(const TrainSettings& settings, const std::string& path,
                                     const char* flag) {
  if (path == "-") return SpoolShardSet(OpenSource("-"), SpoolFolder(settings));
  if (!fs::exists(path)) {
    throw Error(ErrorCode::kIo, path, std::string("no such shards (") + flag + ")", "", kMakeShardsHint);
  }
  return ShardSet::Open(path);
}

std::vector<std::string> DataPaths(const TrainSettings& settings) {
  return settings.data.empty() ? std::vector<std::string>{"shards"} : settings.data;
}

/// For messages.
std::string DataNames(const TrainSettings& settings) {
  std::string names;
  for (const std::string& path : DataPaths(settings)) names += (names.empty() ? "" : ", ") + path;
  return names;
}

/// Opens all sets of --data as one.
/// \param sets gets their sizes, without weights; empty for one set
std::unique_ptr<ShardSet> OpenTrainingData(const TrainSettings& settings, std::vector<OrderedSet>* sets,
                                           std::vector<DataSource>* sources) {
  std::vector<NamedShardSet> named;
  uint64_t first_chunk = 0;
  for (const std::string& path : DataPaths(settings)) {
    named.push_back({path, OpenShards(settings, path, "--data")});
    const ShardTotals& totals = named.back().set->totals();
    sets->push_back({.first_chunk = first_chunk, .chunks = totals.chunks, .weight = totals.chunks});
    sources->push_back({.path = path, .chunks = totals.chunks, .tokens = totals.tokens});
    first_chunk += totals.chunks;
    if (totals.chunks == 0 && DataPaths(settings).size() > 1) {
      throw Error(ErrorCode::kBadInput, path, "holds no chunk, so nothing can be mixed in from it", "",
                  "leave out --data " + path);
    }
  }
  if (sets->size() == 1) sets->clear();
  return JoinShardSets(std::move(named));
}

bool IsConfigPath(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".json") || fs::is_directory(model);
}

struct ChosenModel {
  ModelConfig config;
  std::string name;                    ///< for the run's folder
  std::optional<ChoiceReason> reason;  ///< when the user did not say
  std::optional<StartModel> start;     ///< whose weights a new run starts from
};

ChosenModel ChooseModel(const TrainSettings& settings, const TokenizerIdentity& tokenizer, bool gpu) {
  ChosenModel chosen;
  if (settings.init.empty() && settings.model.empty() && !settings.adapter.empty()) {
    chosen.start = OpenStartModel(BaseOfAdapter(ResolveCheckpoint(settings.adapter)), tokenizer);
    chosen.config = chosen.start->config;
    chosen.name = "tuned";
  } else if (!settings.init.empty() && settings.model.empty()) {
    chosen.start = OpenStartModel(settings.init, tokenizer);
    chosen.config = chosen.start->config;
    chosen.name = "tuned";
  } else if (!settings.model.empty() && IsConfigPath(settings.model)) {
    const std::string path =
        fs::is_directory(settings.model) ? settings.model + "/config.json" : settings.model;
    const std::vector<uint8_t> text = ReadWholeFile(path, 1 << 20);
    chosen.config = DecodeConfigJson(std::string(AsText(text)), path);
    chosen.name = "custom";
    if (chosen.config.vocab_size < tokenizer.vocab_size) {
      throw Error(ErrorCode::kBadInput, path,
                  "vocab_size " + std::to_string(chosen.config.vocab_size) + " is smaller than the " +
                      std::to_string(tokenizer.vocab_size) + " ids of the data's tokenizer",
                  "", "raise vocab_size, or pack data of the model's own tokenizer");
    }
  } else {
    const std::string preset = !settings.model.empty() ? settings.model : gpu ? kGpuPreset : kCpuPreset;
    chosen.config = PresetConfig(preset, tokenizer.vocab_size);
    chosen.name = preset;
    if (settings.model.empty()) {
      chosen.reason = {"model",
                       std::string("it learns within minutes on ") + (gpu ? "a GPU" : "a CPU") +
                           "; --model takes another preset or a config.json",
                       "model " + preset};
    }
  }
  const auto id_or_none = [](uint32_t id) { return id == kNoId ? int64_t{-1} : static_cast<int64_t>(id); };
  const auto take = [&](uint32_t id, int64_t* config_id) {
    if (!chosen.start || id != kNoId) *config_id = id_or_none(id);
  };
  take(tokenizer.bos_id, &chosen.config.bos_id);
  take(tokenizer.eos_id, &chosen.config.eos_id);
  take(tokenizer.pad_id, &chosen.config.pad_id);
  return chosen;
}

/// The folder that is resumed; nullopt for a new run.
std::optional<std::string> FolderToResume(const TrainSettings& settings) {
  if (!settings.resume) return std::nullopt;
  if (!settings.out.empty()) return settings.out;
  const auto newest = RunDirectory::Newest(kRunsFolder);
  if (!newest) {
    throw Error(ErrorCode::kUsage, "--resume", std::string("no run in ") + kRunsFolder + "/ to continue", "",
                "name its folder with --out, or leave out --resume to start one");
  }
  LogInfo("resuming " + *newest + ", the newest run");
  return newest;
}

/// The effective settings as YAML that --config reloads. Strings are written as JSON, which is YAML.
std::string ConfigYaml(const TrainSettings& settings, const TrainPlan& plan, const std::string& model) {
  const std::vector<std::string> data = DataPaths(settings);
  nlohmann::ordered_json values;
  if (data.size() == 1) {
    values["data"] = data[0];
  } else {
    values["data"] = data;
  }
  if (settings.init.empty()) {
    values["model"] = model;
  } else {
    values["init"] = settings.init;
  }
  if (!settings.adapter.empty()) values["adapter"] = settings.adapter;
  values.update(PlanAsOptions(plan));
  if (!settings.eval_data.empty()) values["eval-data"] = settings.eval_data;
  std::string yaml;
  for (const auto& [key, value] : values.items()) yaml += key + ": " + value.dump() + "\n";
  return yaml;
}

class TrainJob {
 public:
  TrainJob(const TrainSettings& settings, const TrainJobContext& context)
      : settings_(settings), context_(context) {}

  int Run(nlohmann::ordered_json* summary);
  /// What the job is at, for when memory runs out.
  MemoryUser memory_user() const;
  /// What the run holds; complete once the trainer is there.
  MemoryBreakdown HeldMemory() const;

 private:
  void CheckSettings() const;
  /// Refuses what needs evaluations of a run that has no data for them.
  void CheckEvaluations(bool evaluates) const;
  /// What --eval-split holds out of the data, counted; nullopt: nothing.
  std::optional<DocumentSplit> SplitData();
  /// Counts what a split holds out.
  /// \throws Error{kUsage} when a side of it has nothing to predict
  void CountHeldOut(const DocumentSplit& split, bool masked);
  /// The set that is evaluated on; null: none.
  const ShardSet* evaluated() const { return plan_.eval_split ? data_.get() : eval_data_.get(); }
  OptionOrigin OriginOf(const std::string& option) const;
  /// --dry-run or --explain: everything is decided, nothing written.
  bool only_tells() const { return settings_.dry_run || settings_.explain; }
  int Tell(nlohmann::ordered_json* summary);
  /// Steps between checkpoints or evaluations that nobody chose: a tenth of the run, 10 to 500.
  int64_t TenthOfRun() const;
  SaveInterval SaveEvery() const;
  void Announce(const std::vector<ChoiceReason>& reasons);
  void StartNew(bool gpu);
  /// Random weights as the base of adapters, in the run.
  void MakeBase();
  /// The first values of the adapters.
  void StartAdapters();
  /// Opens the base that a checkpoint's adapters were trained on, into model_choice_.
  /// \throws Error{kBadInput} on another one
  void OpenBase(const std::string& checkpoint);
  PlannedRun Plan(const TrainSettings& settings, const std::optional<DocumentSplit>& split) const;
  /// --find-batch: the settings with the micro-batch that was found.
  TrainSettings FindBatch(const TrainPlan& plan);
  /// Does what may run out of memory; under --auto-oom again, in halved micro-batches, until it has room.
  template <typename Work>
  auto InWhatMemoryThereIs(const Work& work);
  void Resume(const std::string& checkpoint);
  void WarnOfOtherMachine(const ComputeIdentity& stored);
  /// Whether a thing done every so many steps (0: never) is due after the present one.
  bool Due(int64_t every) const;
  /// Steps between evaluations; 0: at the start and the end only.
  int64_t EvalEvery() const;
  /// Whether --early-stop ends the run here: a function of its evaluations, so a resumed run ends there, too.
  bool StoppedEarly() const;
  int Loop();
  void Evaluate();
  void EvaluateOnce();
  /// Begins to save the present step.
  /// \throws what the save before threw, and in the foreground this one
  void Save();
  /// Records a background save that has ended, if one has.
  /// \param wait until none is under way
  /// \throws its error
  void FinishSave(bool wait);
  /// Fields of metadata.json that tell how the run goes, with what is volatile of them.
  nlohmann::ordered_json DescribeRun() const;
  void MakeCopier();
  /// Records the copies that have ended.
  /// \param wait until none is under way or waits
  void FinishCopies(bool wait);
  /// Copies the checkpoints of a run that is complete.
  /// \returns the exit status
  int CopyAll();
  /// Deletes what does not stay.
  void Retain(int64_t newest_step);
  /// Whether a checkpoint is due before the last step: nothing is left to train beside that at the end.
  bool SavesWhileTraining() const;
  /// Whether saves are written in the background. The first call, after a step, gets memory for their copies.
  bool SavesInBackground();
  /// The plan's, with the sets of the data.
  SampleStreamOptions StreamOptions() const;
  /// A loader that reads the data once.
  LoaderOptions CountingLoader() const { return {.workers = 0, .skip_bad_chunks = loader_.skip_bad_chunks}; }
  std::unique_ptr<SampleStream> OpenStream();
  /// What of the data has which share, for --dry-run; empty for one set.
  std::string FormatSources() const;
  /// The --data options of the run as a command line has them.
  std::string DataOptions() const;
  /// Gives the sets their weights.
  /// \param weights as --data-weights has them
  void WeighSets(const std::string& weights);
  void MakeTrainer();
  /// The device's, as the user says or as its maker does.
  std::optional<double> PeakTflops() const;
  /// Of the files that activations and gradients go to.
  std::string OffloadFolder() const {
    return settings_.offload_dir.empty() ? TemporaryFolder() : settings_.offload_dir;
  }
  /// What of the settings together makes another run than was meant.
  /// \param epoch of the data, where counted
  std::vector<std::string> Traps(const std::optional<EpochCounts>& epoch) const;
  /// Opens the records of this process, once model, stream and trainer stand at its first step.
  void OpenRecorder();

  const TrainSettings& settings_;
  const TrainJobContext& context_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  at::Device device_ = at::Device(at::kCPU);
  ComputeIdentity compute_;
  std::unique_ptr<ShardSet> data_, eval_data_;
  ChosenModel model_choice_;
  TrainPlan plan_;
  std::optional<EpochCounts> epoch_;  ///< of the data, where the plan needed it
  SplitCounts held_out_;              ///< of the data; zeros without a split
  std::unique_ptr<RunDirectory> run_;
  OffloadChoice offload_;
  std::unique_ptr<LanguageModel> model_;
  std::vector<OrderedSet> sets_;     ///< of the data that are mixed; empty: one
  std::vector<DataSource> sources_;  ///< the same for the records, one too
  LoaderOptions loader_;
  bool pin_ = false;
  AttentionBackend attention_ = AttentionBackend::kAuto;
  ActivationCheckpointing checkpointing_ = ActivationCheckpointing::kNo;
  int64_t runtime_bytes_ = 0;                ///< anonymous memory in use before there was a model
  std::optional<int64_t> memory_cap_bytes_;  ///< --mem-fraction
  std::unique_ptr<SampleStream> stream_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<RunRecorder> recorder_;
  nlohmann::ordered_json provenance_;
  std::string base_folder_;                 ///< of adapters: where their base lies; or empty
  nlohmann::ordered_json init_provenance_;  ///< of the start model, or null

  std::vector<ChoiceReason> reasons_;   ///< of all that was chosen for the user
  nlohmann::ordered_json stored_plan_;  ///< of the checkpoint, as options; null for a new run
  int64_t resumed_step_ = 0, resumed_tokens_ = 0;

  std::optional<int64_t> evaluated_step_;
  std::unique_ptr<CheckpointCopier> copier_;  ///< null: no copies
  TrainingHistory history_;
  SnapshotBuffers snapshot_;
  std::optional<bool> background_;  ///< SavesInBackground, once it was asked
  std::string layout_, matrices_;   ///< of the state
  SavedCheckpoint saved_;           ///< the last that has ended
  std::optional<int64_t> saved_step_;
  std::chrono::steady_clock::time_point saved_at_ = start_;
  CheckpointWriter writer_;  // last: its thread uses the others
};

OptionOrigin TrainJob::OriginOf(const std::string& option) const {
  const auto found = std::find_if(context_.options.begin(), context_.options.end(),
                                  [&](const OptionValue& value) { return value.key == option; });
  return found != context_.options.end() ? found->origin : OptionOrigin::kCommandLine;
}

void TrainJob::CheckSettings() const {
  if (!settings_.init.empty() && !settings_.model.empty()) {
    throw Error(ErrorCode::kUsage, "--init, --model",
                "cannot both be given: the model of --init has its shape", "", "leave out --model");
  }
  const auto require = [](bool holds, const char* flag, const char* problem) {
    if (!holds) throw Error(ErrorCode::kUsage, flag, problem);
  };
  require(!settings_.find_batch || !settings_.resume, "--find-batch",
          "has no meaning with --resume: --batch and --accum split the run's steps otherwise");
  require(settings_.log_every >= 1, "--log-every", "must be at least 1 step");
  require(settings_.keep >= 0, "--keep", "must be at least 0 checkpoints");
  require(settings_.keep_best >= 0, "--keep-best", "must be at least 0 checkpoints");
  const bool copies = !settings_.copy_to.empty() || !settings_.copy_command.empty();
  require(!settings_.copy_compress || !settings_.copy_to.empty(), "--copy-compress", "needs --copy-to");
  require(!settings_.delete_after_copy || copies, "--delete-after-copy", "needs --copy-to or --copy-command");
  require(settings_.copy_retries >= 0, "--copy-retries", "must be at least 0");
  require(settings_.copy_queue >= 1, "--copy-queue", "must be at least 1 checkpoint");
  require(ParseSaveInterval(settings_.copy_timeout, "--copy-timeout").time_s > 0, "--copy-timeout",
          "must be a time with its unit: 90s, 10m, 1.5h");
  require(settings_.peak_tflops.value_or(1) > 0 && std::isfinite(settings_.peak_tflops.value_or(1)),
          "--peak-tflops", "must be a number above 0");
  require(settings_.cost_per_hour.value_or(0) >= 0 && std::isfinite(settings_.cost_per_hour.value_or(0)),
          "--cost-per-hour", "must be a number of at least 0");
  require(settings_.max_minutes >= 0, "--max-minutes", "must be at least 0");
  require(settings_.watchdog_ratio > 1, "--watchdog-ratio", "must be more than 1");
  if (!settings_.save_every.empty()) ParseSaveInterval(settings_.save_every, "--save-every");
  require(settings_.eval_every.value_or(0) >= 0, "--eval-every", "must be at least 0 steps");
  require(settings_.early_stop.value_or(1) >= 1, "--early-stop", "must be at least 1 evaluation");
  require(settings_.eval_tokens.value_or(1) >= 1, "--eval-tokens", "must be at least 1");
  const std::vector<std::string> data = DataPaths(settings_);
  const auto pipes = std::count(data.begin(), data.end(), "-");
  if (pipes > 1 || (pipes == 1 && settings_.eval_data == "-")) {
    throw Error(ErrorCode::kUsage, pipes > 1 ? "--data" : "--data, --eval-data",
                "cannot both be standard input");
  }
  if (!settings_.data_weights.empty()) ParseMixtureWeights(settings_.data_weights, data.size());
  require(settings_.eval_data.empty() || settings_.eval_split.empty(), "--eval-data, --eval-split",
          "cannot both be given: one says what to evaluate on, the other holds it out of --data");
  require(!settings_.eval_split_seed || !settings_.eval_split.empty() || settings_.resume,
          "--eval-split-seed", "has a meaning only with --eval-split");
  // A run that is resumed may hold out what it evaluates on.
  if (!settings_.resume) CheckEvaluations(!settings_.eval_data.empty() || !settings_.eval_split.empty());
}

void TrainJob::CheckEvaluations(bool evaluates) const {
  constexpr char kHint[] = "name it with --eval-data, or hold some of the data out with --eval-split 0.05";
  if (settings_.keep_best > 0 && !evaluates) {
    throw Error(ErrorCode::kUsage, "--keep-best", "needs data to evaluate on", "", kHint);
  }
  if (settings_.early_stop && (!evaluates || settings_.eval_every == 0)) {
    throw Error(
        ErrorCode::kUsage, "--early-stop", "needs evaluations within the run", "",
        "name data with --eval-data, or hold some out with --eval-split 0.05, and leave out --eval-every 0");
  }
  if (settings_.eval_every && !evaluates && OriginOf("eval-every") > OptionOrigin::kPreset) {
    throw Error(ErrorCode::kUsage, "--eval-every", "needs data to evaluate on", "", kHint);
  }
}

int TrainJob::Run(nlohmann::ordered_json* summary) {
  CheckSettings();
  const int threads = SetComputeThreads(settings_.threads);
  device_ = ChooseDevice(settings_.device);
  const bool gpu = device_.is_cuda();
  compute_ = {.device = device_.str(),
              .cpu_capability = CpuCapability(),
              .torch_build = TorchBuild(),
              .threads = threads,
              .attention = settings_.attn_backend};
  LogInfo("device " + compute_.device + ", " + std::to_string(threads) + " thread" +
          (threads == 1 ? "" : "s"));
  const PlannedLoader loader = PlanLoader(settings_, gpu, UsablePhysicalCores());
  loader_ = loader.options;
  pin_ = loader.pin;
  attention_ = ParseAttentionBackend(settings_.attn_backend, "--attn-backend");
  if (settings_.mem_fraction) {
    memory_cap_bytes_ =
        gpu ? CapDeviceMemory(device_, *settings_.mem_fraction) : CapHostMemory(*settings_.mem_fraction);
  }
  KeepRoomForLibraries();
  checkpointing_ = ParseActivationCheckpointing(settings_.checkpoint_activations, "--checkpoint-activations");
  offload_ = ParseOffloadChoice(settings_.offload, "--offload");
  if (offload_.any() && device_.is_cpu()) {
    MakeOffloadStack(device_, OffloadFolder());  // a folder that cannot have the file is told of now
    if (IsInMemory(OffloadFolder())) {
      LogWarning(OffloadFolder() +
                 " lies in memory (tmpfs), so --offload gains nothing: name a folder on a disk by "
                 "--offload-dir");
    }
  }
  Announce(loader.reasons);

  // Everything that can be wrong with the input is found before a run directory is made.
  const std::optional<std::string> resumed_folder = FolderToResume(settings_);
  data_ = OpenTrainingData(settings_, &sets_, &sources_);
  if (!settings_.eval_data.empty()) {
    eval_data_ = OpenShards(settings_, settings_.eval_data, "--eval-data");
    if (eval_data_->header().tokenizer.sha256 != data_->header().tokenizer.sha256) {
      throw Error(ErrorCode::kBadInput, settings_.eval_data,
                  "was made with another tokenizer than " + DataNames(settings_), "",
                  "pretokenize both with the same --tokenizer");
    }
  }
  std::string checkpoint;
  if (resumed_folder && (!only_tells() || fs::exists(*resumed_folder))) {
    run_ = std::make_unique<RunDirectory>(*resumed_folder);
    checkpoint =
        only_tells() ? NewestGoodCheckpoint(*run_) : NewestCheckpointOrCopy(run_.get(), settings_.copy_to);
    if (checkpoint.empty()) LogInfo(run_->path() + " holds no checkpoint yet: starting from the beginning");
  }

  if (!checkpoint.empty()) {
    Resume(checkpoint);
    if (only_tells()) return Tell(summary);
    if (trainer_->done()) {
      LogInfo("the run is complete: " + std::to_string(trainer_->step()) + " steps, " + checkpoint);
      *summary = {
          {"steps", trainer_->step()}, {"tokens", trainer_->tokens_seen()}, {"checkpoint", checkpoint}};
      return CopyAll();
    }
  } else {
    CheckEvaluations(eval_data_ != nullptr || !settings_.eval_split.empty());
    StartNew(gpu);
    if (only_tells()) return Tell(summary);
  }

  int status = 0;
  try {
    status = WithMemoryErrors([&] { return memory_user(); }, [&] { return Loop(); });
  } catch (const Error& error) {
    // The record of a failed run says why; a failing disk must not hide the first error.
    try {
      FinishSave(/*wait=*/true);
    } catch (const Error& save_error) {
      LogWarning(save_error.what());
    }
    try {
      FinishCopies(/*wait=*/true);
    } catch (const Error&) {
    }
    try {
      recorder_->RecordEnd(static_cast<int>(error.code()), error.what());
    } catch (const Error&) {
    }
    throw;
  }
  recorder_->PrintReport(status, saved_);
  if (copier_ && !copier_->missing().empty()) {
    const std::set<int64_t> missing = copier_->missing();
    LogError(std::to_string(missing.size()) + " of the checkpoints that were saved " +
             (missing.size() == 1 ? "has" : "have") + " no copy, the first is step " +
             std::to_string(*missing.begin()) + "; see the warnings");
  }
  *summary = recorder_->Summary(saved_);
  return status;
}

MemoryUser TrainJob::memory_user() const {
  const std::string sizes = "micro-batches of " + std::to_string(plan_.batch) + " samples of up to " +
                            std::to_string(plan_.sequence_tokens) + " tokens";
  const std::string cap = memory_cap_bytes_
                              ? "--mem-fraction " + nlohmann::json(*settings_.mem_fraction).dump() + ", " +
                                    FormatBytes(static_cast<uint64_t>(*memory_cap_bytes_))
                              : "";
  if (!stream_) return {"before the first step", "take a smaller --model", cap};
  // What is held tells too little: it is what did not get its memory that is missing there.
  MemoryBreakdown memory =
      NeededByModel(model_choice_.config, plan_.precision, plan_.tuning, plan_.optimizer.states,
                    checkpointing_, offload_, plan_.batch, plan_.sequence_tokens);
  memory.snapshot = snapshot_.size_bytes();
  if (stream_) memory.loader = stream_->loader_counts().most_held_bytes;
  const auto shapes = MakeModel(model_choice_.config, plan_.precision, at::Device(at::kMeta), std::nullopt,
                                AttentionBackend::kAuto, plan_.tuning);
  const std::string hint =
      "in this order: " + MemoryAdvice(memory, shapes->parameters(), plan_.optimizer.states, checkpointing_,
                                       offload_, settings_.auto_oom);
  return {(settings_.dry_run ? "dry run, "
           : trainer_        ? "step " + std::to_string(trainer_->step() + 1) + ", "
                             : "before the first step, ") +
              sizes,
          hint, cap};
}

MemoryBreakdown TrainJob::HeldMemory() const {
  MemoryBreakdown memory = HeldByModel(*model_);
  memory.optimizer = trainer_->optimizer_bytes();
  memory.loader = stream_->loader_counts().most_held_bytes;
  memory.snapshot = snapshot_.size_bytes();
  if (device_.is_cpu()) memory.heap = FreeHeapBytes();
  // A GPU's libraries take host memory that came after the model.
  memory.runtime = device_.is_cpu() ? runtime_bytes_ + ResidentFileBytes()
                                    : ResidentBytes() - memory.loader - memory.snapshot;
  return memory;
}

void TrainJob::Announce(const std::vector<ChoiceReason>& reasons) {
  for (const ChoiceReason& reason : reasons) {
    reasons_.push_back(reason);
    if (!reason.headline.empty() && !settings_.explain) LogInfo(reason.line());
  }
}

int64_t TrainJob::TenthOfRun() const {
  return std::clamp<int64_t>((plan_.schedule.total_steps + 9) / 10, 10, 500);
}

SaveInterval TrainJob::SaveEvery() const {
  if (settings_.save_every.empty()) return {.steps = TenthOfRun()};
  return ParseSaveInterval(settings_.save_every, "--save-every");
}

int TrainJob::Tell(nlohmann::ordered_json* summary) {
  const SaveInterval save_every = SaveEvery();
  std::string text;
  int status = 0;
  if (settings_.explain) {
    nlohmann::ordered_json resolved = PlanAsOptions(plan_);
    resolved.update({{"model", settings_.model.empty() ? model_choice_.name : settings_.model},
                     {"device", compute_.device},
                     {"threads", compute_.threads},
                     {"workers", loader_.workers},
                     {"prefetch", loader_.prefetch},
                     {"pin", pin_ ? "on" : "off"},
                     {"data-cache", loader_.cache_bytes},
                     {"shuffle-block", plan_.block_chunks},
                     {"data", DataNames(settings_)},
                     {"attn-backend", AttentionBackendName(attention_)},
                     {"cache-dir", SpoolFolder(settings_)}});
    if (save_every.time_s > 0 || save_every.epochs) {
      resolved["save-every"] = settings_.save_every;
    } else {
      resolved["save-every"] = save_every.steps;
    }
    if (evaluated() != nullptr) resolved["eval-every"] = settings_.eval_every.value_or(TenthOfRun());
    if (run_) resolved["out"] = run_->path();
    const auto because = [&](const char* option, const char* reason) {
      reasons_.push_back({option, reason, ""});
    };
    if (const auto peak_tflops = PeakTflops()) resolved["peak-tflops"] = *peak_tflops;
    if (!settings_.peak_tflops) {
      const std::string gpu = GpuName(device_);
      const auto published = PublishedPeakRate(gpu, plan_.precision);
      reasons_.push_back({"peak-tflops",
                          published ? PrecisionName(plan_.precision) + " of " + gpu + ": " + published->source
                                    : "not known for this device, so mfu is null",
                          ""});
    }
    if (settings_.device == "auto") because("device", "auto takes the GPU if there is one");
    if (settings_.threads == 0) because("threads", "the physical cores this process may use");
    if (settings_.save_every.empty()) because("save-every", "a tenth of the run, 10 to 500 steps");
    if (evaluated() != nullptr && !settings_.eval_every)
      because("eval-every", "a tenth of the run, 10 to 500 steps");
    if (settings_.out.empty()) {
      because("out", run_ ? "the newest run in runs/" : "the first free runs/MODEL-NNN when training starts");
    }
    if (settings_.cache_dir.empty()) because("cache-dir", "$TMPDIR, or /var/tmp");
    if (settings_.async_save == "auto") {
      // What the steps themselves will take is not known here: what weights, gradients and moments take is.
      const int64_t elements = CountParameters(model_choice_.config);
      const int64_t moments_bytes = OptimizerStateBytes(plan_.optimizer.states, elements);
      const int64_t trainer_bytes =
          device_.is_cpu() ? 2 * elements * int64_t{sizeof(float)} + moments_bytes : 0;
      const AsyncSaveChoice choice =
          ChooseAsyncSave(SnapshotBytes(elements, moments_bytes),
                          std::max<int64_t>(1, AvailableMemoryBytes() - trainer_bytes));
      resolved["async-save"] = choice.background ? "on" : "off";
      reasons_.push_back({"async-save", choice.reason, ""});
    } else {
      resolved["async-save"] = settings_.async_save;
    }
    if (!settings_.prefetch) because("prefetch", "1 on a CPU, 2 on a GPU");
    if (!stored_plan_.is_null()) stored_plan_["model"] = "the checkpoint's";
    const std::vector<ExplainedOption> options =
        ExplainOptions(context_.options, resolved, reasons_, stored_plan_);
    text += FormatExplanation(options);
    (*summary)["options"] = EncodeExplanation(options);
  }
  if (settings_.dry_run) {
    const int64_t steps = plan_.schedule.total_steps - resumed_step_;
    // How many checkpoints a time or epochs make is not known before the run: at most one a step.
    const int64_t interval_steps = save_every.time_s > 0 || save_every.epochs ? 1 : save_every.steps;
    const int64_t checkpoints = interval_steps > 0 ? (steps + interval_steps - 1) / interval_steps : 1;
    const DryRunReport report =
        DryRun({.model = model_choice_.config,
                .plan = plan_,
                .device = device_,
                .steps = steps,
                .checkpoints_kept = settings_.keep > 0 ? std::min(settings_.keep, checkpoints) : checkpoints,
                .step_records = steps / settings_.log_every,
                .attention = attention_,
                .snapshot = settings_.async_save == "on"                             ? Snapshot::kYes
                            : settings_.async_save == "off" || !SavesWhileTraining() ? Snapshot::kNo
                                                                                     : Snapshot::kWhereItFits,
                .checkpointing = checkpointing_,
                .offload = offload_,
                .offload_folder = OffloadFolder()},
               stream_.get());
    text += (text.empty() ? "" : "\n") + FormatDryRun(report) + FormatSources();
    summary->update(EncodeDryRun(report));
    status = report.fits() ? 0 : kDoesNotFit;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return status;
}

PlannedRun TrainJob::Plan(const TrainSettings& settings, const std::optional<DocumentSplit>& split) const {
  PlanFacts facts = {.model = model_choice_.config,
                     .gpu = device_.is_cuda(),
                     .fast_bf16 = HasFastProducts(Precision::kBf16, device_),
                     .count_epoch =
                         [&](SampleStreamOptions options) {
                           options.sets = sets_;
                           return SampleStream(data_.get(), options, CountingLoader()).CountEpoch();
                         },
                     .records = data_->header().record_kind,
                     .eval_split = split};
  if (!settings.adapter.empty()) facts.adapter = ReadPeftConfig(ResolveCheckpoint(settings.adapter)).lora;
  return PlanRun(settings, facts);
}

std::optional<DocumentSplit> TrainJob::SplitData() {
  if (settings_.eval_split.empty()) return std::nullopt;
  return ParseDocumentSplit(settings_.eval_split, settings_.eval_split_seed.value_or(0), data_.get(),
                            settings_.skip_bad_chunks > 0);
}

void TrainJob::CountHeldOut(const DocumentSplit& split, bool masked) {
  held_out_ = CountSplit(split, *data_, masked, settings_.skip_bad_chunks > 0);
  if (held_out_.held_out_labels == 0 || held_out_.held_out_documents == held_out_.documents) {
    throw Error(
        ErrorCode::kUsage, "--eval-split",
        split.asked + " holds out " + std::to_string(held_out_.held_out_documents) + " of the data's " +
            std::to_string(held_out_.documents) + " documents, " +
            (held_out_.held_out_labels == 0 ? "with nothing to predict" : "which leaves nothing to train on"),
        "",
        "their hashes decide: give another share, a number of documents (--eval-split 1), or another "
        "--eval-split-seed; a document longer than pack's --chunk counts once a chunk");
  }
  LogInfo("holding out " + std::to_string(held_out_.held_out_documents) + " of " +
          std::to_string(held_out_.documents) + " documents, " +
          FormatCount(static_cast<double>(held_out_.held_out_tokens)) + " tokens, to evaluate on");
  if (const uint64_t cut = data_->totals().documents_cut; cut > 0) {
    LogWarning(
        "--eval-split: pack cut " + std::to_string(cut) +
        " documents into parts, and parts of one may be on both sides; a longer --chunk keeps them whole");
  }
}

void TrainJob::WeighSets(const std::string& weights) {
  if (sets_.empty()) return;
  if (!weights.empty()) {
    const std::vector<uint64_t> parsed = ParseMixtureWeights(weights, sets_.size());
    for (size_t i = 0; i < sets_.size(); ++i) sets_[i].weight = parsed[i];
  }
  double sum = 0;
  for (const OrderedSet& set : sets_) sum += static_cast<double>(set.weight);
  std::string text;
  for (size_t i = 0; i < sets_.size(); ++i) {
    sources_[i].share = static_cast<double>(sets_[i].weight) / sum;
    text += (i == 0 ? "" : ", ") + FormatFixed(100 * sources_[i].share, 2) + " % " + sources_[i].path;
  }
  Announce({{"data-weights",
             (weights.empty() ? "by their chunks, each once an epoch: " : "of the chunks drawn: ") + text,
             "mixing " + std::to_string(sets_.size()) + " sets"}});
}

SampleStreamOptions TrainJob::StreamOptions() const {
  SampleStreamOptions options = plan_.stream_options();
  options.sets = sets_;
  return options;
}

std::unique_ptr<SampleStream> TrainJob::OpenStream() {
  PlannedLoader cache;
  PlanDataCache(settings_, data_->header().chunks_per_frame, plan_.block_chunks, &cache);
  loader_.cache_bytes = cache.options.cache_bytes;
  Announce(cache.reasons);
  return std::make_unique<SampleStream>(data_.get(), StreamOptions(), loader_);
}

std::string TrainJob::DataOptions() const {
  std::string options;
  for (const std::string& path : DataPaths(settings_)) {
    options += (options.empty() ? "" : " --data ") + path;
  }
  return options;
}

std::string TrainJob::FormatSources() const {
  if (sets_.empty()) return "";
  const int64_t samples = plan_.schedule.total_steps * plan_.samples_per_step();
  // Samples of an epoch are not known in all runs; tokens of a whole sample bound them from above.
  const double run_tokens = static_cast<double>(samples) * static_cast<double>(plan_.sequence_tokens);
  std::string text = "\n";
  for (const DataSource& source : sources_) {
    text += "data  " + FormatFixed(100 * source.share, 2) + " % " + source.path + ": " +
            FormatCount(static_cast<double>(source.tokens)) + " tokens, read at most " +
            FormatFixed(source.share * run_tokens / static_cast<double>(source.tokens), 2) +
            " times in the run\n";
  }
  return text;
}

TrainSettings TrainJob::FindBatch(const TrainPlan& plan) {
  int64_t memory_bytes = device_.is_cpu() ? AvailableMemoryBytes() : FreeDeviceBytes(device_);
  if (memory_cap_bytes_) memory_bytes = *memory_cap_bytes_;
  const BatchSearch search = SearchBatch({.model = model_choice_.config,
                                          .precision = plan.precision,
                                          .device = device_,
                                          .sequence_tokens = plan.sequence_tokens,
                                          .time_s = kFindBatchTimeS,
                                          .memory_bytes = memory_bytes,
                                          .tuning = plan.tuning,
                                          .checkpointing = checkpointing_,
                                          .offload = offload_,
                                          .offload_folder = OffloadFolder()});
  TrainSettings settings = settings_;
  if (search.points.empty()) {
    LogWarning("--find-batch: not one sample could be tried; batch " + std::to_string(plan.batch) + " stays");
    return settings;
  }
  const BatchPoint& found = search.chosen ? *search.chosen : search.points.back();
  int64_t batch = found.batch;
  std::string reason = search.chosen                       ? "larger ones are no faster"
                       : search.stop == BatchStop::kMemory ? "larger ones do not fit"
                                                           : "the largest that was tried in time";
  if (search.chosen && search.stop == BatchStop::kMemory) reason = "the fastest of those that fit";
  reason = FormatCount(found.tokens.median) + " tokens/s, " + reason;
  if (settings_.batch || settings_.accum) {
    // The step keeps its size.
    const int64_t samples = plan.samples_per_step();
    batch = std::min(batch, samples);
    while (samples % batch != 0) --batch;
    settings.accum = samples / batch;
    reason += "; --accum " + std::to_string(*settings.accum) + " keeps the " + std::to_string(samples) +
              " samples a step";
  }
  settings.batch = batch;
  Announce({{"batch", reason, "batch " + std::to_string(batch)}});
  return settings;
}

template <typename Work>
auto TrainJob::InWhatMemoryThereIs(const Work& work) {
  for (;;) {
    std::optional<Error> problem;
    try {
      return work();
    } catch (const std::exception& exception) {
      if (settings_.auto_oom) problem = AsMemoryError(exception, memory_user());
      if (!problem || !trainer_->HalveMicroBatches()) throw;
    }
    plan_ = trainer_->plan();
    recorder_->set_plan(plan_);
    recorder_->Warn("out of memory, " + std::string(problem->what()) + ": going on with --batch " +
                    std::to_string(plan_.batch) + " --accum " + std::to_string(plan_.accum) +
                    ", as many samples a step");
  }
}

void TrainJob::StartNew(bool gpu) {
  model_choice_ = ChooseModel(settings_, data_->header().tokenizer, gpu);
  WeighSets(settings_.data_weights);
  const std::optional<DocumentSplit> split = SplitData();
  PlannedRun planned = Plan(settings_, split);
  if (settings_.find_batch) planned = Plan(FindBatch(planned.plan), split);
  plan_ = planned.plan;
  if (split) CountHeldOut(*split, IsMasked(data_->header(), plan_.labels_on()));
  epoch_ = planned.epoch;
  // Where the data is read many times, reading it once more to say so is cheap.
  const double most_tokens = static_cast<double>(plan_.schedule.total_steps) *
                             static_cast<double>(plan_.samples_per_step()) *
                             static_cast<double>(plan_.sequence_tokens);
  if (!epoch_ && most_tokens > kManyPasses * static_cast<double>(data_->totals().tokens)) {
    epoch_ = SampleStream(data_.get(), StreamOptions(), CountingLoader()).CountEpoch();
  }
  // Adapters that cannot be are refused before anything is written.
  if (!settings_.adapter.empty() && !settings_.allow_other_base && model_choice_.start) {
    RequireBaseOfAdapter(ResolveCheckpoint(settings_.adapter), model_choice_.start->folder,
                         "name the adapter's base with --init, or take this base by --allow-other-base",
                         model_choice_.start->provenance.at("files"));
  }
  if (plan_.tuning.lora) {
    MakeModel(model_choice_.config, Precision::kFp32, at::Device(at::kMeta), std::nullopt,
              AttentionBackend::kAuto, plan_.tuning);
  }
  if (plan_.objective == RecordKind::kLm && data_->header().record_kind == RecordKind::kSft) {
    LogWarning(DataNames(settings_) +
               ": holds conversations (sft records), and --objective lm trains on their prompts too");
  }
  stream_ = OpenStream();
  if (only_tells()) {
    if (model_choice_.reason) Announce({*model_choice_.reason});
    Announce(planned.reasons);
    for (const std::string& trap : Traps(epoch_)) LogWarning(trap);
    return;
  }

  if (!run_ && settings_.out.empty()) {
    run_ = std::make_unique<RunDirectory>(RunDirectory::CreateNumbered(kRunsFolder, model_choice_.name));
  } else if (!run_) {
    run_ = std::make_unique<RunDirectory>(settings_.out);
    if (!run_->CheckpointSteps().empty()) {
      throw Error(ErrorCode::kUsage, settings_.out, "already holds a run with checkpoints", "",
                  "continue it with --resume, or choose another folder with --out");
    }
  }
  RunRecorder::CutBack(*run_, -1);

  LogInfo("run " + run_->path());
  if (model_choice_.reason) Announce({*model_choice_.reason});
  Announce(planned.reasons);

  if (plan_.tuning.lora && !model_choice_.start) MakeBase();
  const std::optional<StartModel>& start = model_choice_.start;
  runtime_bytes_ = ResidentAnonymousBytes() - FreeHeapBytes();
  const std::optional<uint64_t> weights_seed = start ? std::nullopt : std::optional(plan_.seed);
  model_ = MakeModel(model_choice_.config, plan_.precision, device_, weights_seed, attention_, plan_.tuning);
  if (start) {
    LoadWeights(start->folder, &model_->parameters());
    init_provenance_ = start->provenance;
    LogInfo("starting from the weights of " + start->folder);
  }
  if (plan_.tuning.lora) StartAdapters();
  MakeTrainer();
  WriteFileAtomically(
      run_->config_path(),
      AsBytes(ConfigYaml(settings_, plan_, settings_.model.empty() ? model_choice_.name : settings_.model)));
  OpenRecorder();
  if (start && !start->tokenizer_known) {
    recorder_->Warn(
        "the tokenizer of " + settings_.init +
        " is of a kind that train cannot read: that the data's ids are the model's is not checked");
  }
}

void TrainJob::MakeBase() {
  LogWarning(
      "--lora without --init: adapters on a base of random weights, which stays random; it is saved as " +
      run_->path() + "/" + kBaseFolder);
  const std::string folder = run_->path() + "/" + kBaseFolder;
  fs::create_directories(folder);
  const auto base = MakeModel(model_choice_.config, Precision::kFp32, at::Device(at::kCPU), plan_.seed);
  WriteHfFolder(folder, *base, data_->header().tokenizer);
  model_choice_.start = OpenStartModel(folder, data_->header().tokenizer);
}

void TrainJob::StartAdapters() {
  base_folder_ = fs::absolute(model_choice_.start->folder).lexically_normal().string();
  FlatParameters& parameters = model_->parameters();
  if (settings_.adapter.empty()) {
    parameters.adapters()->Initialize(plan_.seed, &parameters);
  } else {
    const std::string adapter = ResolveCheckpoint(settings_.adapter);
    VerifyCheckpointFiles(adapter);
    LoadPeftWeights(adapter, &parameters);
    LogInfo("going on with the adapter " + adapter);
  }
  LogInfo("training " + std::to_string(parameters.trainable_count()) + " of " +
          std::to_string(parameters.count()) + " parameters");
}

void TrainJob::OpenBase(const std::string& checkpoint) {
  TrainSettings with_base = settings_;
  with_base.model.clear();
  if (with_base.init.empty()) with_base.init = BaseOfAdapter(checkpoint);
  model_choice_ = ChooseModel(with_base, data_->header().tokenizer, device_.is_cuda());
  base_folder_ = fs::absolute(model_choice_.start->folder).lexically_normal().string();
  RequireBaseOfAdapter(checkpoint, model_choice_.start->folder, "name the run's base with --init",
                       model_choice_.start->provenance.at("files"));
}

void TrainJob::Resume(const std::string& checkpoint) {
  TrainState state = ReadTrainState(checkpoint + "/" + kStateFileName);
  plan_ = state.plan;
  stored_plan_ = PlanAsOptions(plan_);
  resumed_step_ = state.trainer.step;
  resumed_tokens_ = state.trainer.tokens_seen;
  const std::vector<std::string> warnings = ReconcilePlan(settings_, &plan_);
  WeighSets(plan_.data_weights);
  CheckEvaluations(evaluated() != nullptr);
  if (plan_.tuning.lora) {
    OpenBase(checkpoint);
  } else {
    model_choice_.config = ReadHfConfig(checkpoint);
  }
  if (!settings_.model.empty()) {
    const ModelConfig asked = ChooseModel(settings_, data_->header().tokenizer, device_.is_cuda()).config;
    if (EncodeConfigJson(asked) != EncodeConfigJson(model_choice_.config)) {
      throw Error(ErrorCode::kUsage, "--model", settings_.model + " is another model than the run's", "",
                  "leave out --model to continue the run, or start another with --out");
    }
  }

  stream_ = OpenStream();
  bool data_changed = false;
  if (stream_->fingerprint() != state.order_fingerprint) {
    if (!settings_.allow_data_change) {
      throw Error(
          ErrorCode::kBadInput, DataNames(settings_), "is not the data that the run was started on",
          "content " + HexEncode(data_->content_sha256()).substr(0, 12) + ", the run's " +
              state.data_sha256.substr(0, 12),
          "give the run's data by --data, or go on with this data from its beginning by --allow-data-change");
    }
    data_changed = true;
    state.trainer.cursor = {};
    state.trainer.bad_chunks = {};
  }

  if (plan_.eval_split) CountHeldOut(*plan_.eval_split, IsMasked(data_->header(), plan_.labels_on()));
  if (only_tells()) {
    if (!data_changed) stream_->Seek(state.trainer.cursor);
    return;
  }
  runtime_bytes_ = ResidentAnonymousBytes() - FreeHeapBytes();
  if (plan_.tuning.lora) {
    model_ =
        MakeModel(model_choice_.config, plan_.precision, device_, std::nullopt, attention_, plan_.tuning);
    LoadWeights(base_folder_, &model_->parameters());
    LoadPeftWeights(checkpoint, &model_->parameters());
  } else {
    model_ = LoadHfModel(checkpoint, plan_.precision, device_, attention_);
  }
  if (DescribeLayout(model_->parameters()) != state.layout) {
    throw Error(ErrorCode::kBadInput, checkpoint,
                "lays its parameters out in an order that this build does not use", "",
                "resume with the version that wrote it (see version in its metadata.json)");
  }
  MakeTrainer();
  trainer_->Restore(state.trainer);
  saved_step_ = trainer_->step();
  saved_.path = checkpoint;
  history_.Restore(ReadCheckpointMetadata(checkpoint));
  LogInfo("run " + run_->path() + ": continuing at step " + std::to_string(trainer_->step()) + " of " +
          std::to_string(plan_.schedule.total_steps));
  if (trainer_->done()) return;

  RunRecorder::CutBack(*run_, trainer_->step());
  init_provenance_ = ReadCheckpointProvenance(checkpoint, "init");
  OpenRecorder();
  if (!state.watchdog.is_null()) recorder_->loss_watchdog().set_state(state.watchdog, checkpoint);
  for (const std::string& warning : warnings) recorder_->Warn(warning);
  if (copier_)
    copier_->Add(trainer_->step(), checkpoint);  // a process that was killed may not have copied it
  if (data_changed)
    recorder_->Warn("the data changed: reading " + DataNames(settings_) + " from its beginning");
  WarnOfOtherMachine(state.compute);
}

void TrainJob::WarnOfOtherMachine(const ComputeIdentity& stored) {
  const auto compare = [&](const std::string& what, const std::string& before, const std::string& now) {
    if (before != now) {
      recorder_->Warn(what + " " + now + " instead of the run's " + before +
                      ": results differ by rounding from those of the uninterrupted run");
    }
  };
  compare("device", stored.device, compute_.device);
  compare("threads", std::to_string(stored.threads), std::to_string(compute_.threads));
  compare("instruction set", stored.cpu_capability, compute_.cpu_capability);
  compare("torch build", stored.torch_build, compute_.torch_build);
  compare("attention", stored.attention, compute_.attention);
}

void TrainJob::MakeTrainer() {
  trainer_ = std::make_unique<Trainer>(model_.get(), stream_.get(), plan_, device_);
  trainer_->set_pin(pin_);
  model_->set_activation_checkpointing(checkpointing_);
  model_->Offload(offload_, OffloadFolder());
  const GradientBuffer& gradients = model_->parameters().gradient_buffer();
  if (offload_.gradients && gradients.memory_bytes() == gradients.size_bytes()) {
    LogWarning(
        "--offload gradients gains nothing here: what is trained is one part, whose gradients are needed "
        "together");
  }
  layout_ = DescribeLayout(model_->parameters());
  matrices_ = DescribeMatrices(model_->parameters());
}

std::optional<double> TrainJob::PeakTflops() const {
  if (settings_.peak_tflops) return settings_.peak_tflops;
  const auto published = PublishedPeakRate(GpuName(device_), plan_.precision);
  return published ? std::optional(published->tflops) : std::nullopt;
}

void TrainJob::OpenRecorder() {
  MakeCopier();
  const std::string tokenizer_sha256 = HexEncode(data_->header().tokenizer.sha256);
  provenance_ = {
      {"model", nlohmann::ordered_json::parse(EncodeConfigJson(model_choice_.config))},
      {"plan", EncodePlan(plan_)},
      {"data_sha256", HexEncode(data_->content_sha256())},
      {"tokenizer_sha256", tokenizer_sha256},
      {"data_provenance", nlohmann::ordered_json::parse(data_->header().provenance_json, nullptr, false)},
  };
  if (!init_provenance_.is_null()) provenance_["init"] = init_provenance_;
  const ShardTotals& totals = data_->totals();
  recorder_ = std::make_unique<RunRecorder>(
      run_.get(),
      RunFacts{.plan = plan_,
               .model = model_choice_.config,
               .flops = CountStepFlops(*model_),
               .parameters = model_->parameters().count(),
               .compute = compute_,
               .peak_tflops = PeakTflops(),
               .data_tokens = totals.tokens,
               .data_documents = totals.documents,
               .held_out = held_out_,
               .data_sha256 = HexEncode(data_->content_sha256()),
               .tokenizer_sha256 = tokenizer_sha256,
               .sources = sources_,
               .data_path = DataOptions(),
               .eval_data_path = !plan_.eval_split                  ? settings_.eval_data
                                 : DataPaths(settings_).size() == 1 ? DataPaths(settings_)[0]
                                                                    : "",
               .argv = context_.argv,
               .start = start_,
               .first_step = trainer_->step(),
               .tokens_before = trainer_->tokens_seen()},
      RunRecorderOptions{.log_every = settings_.log_every,
                         .progress = context_.progress,
                         .watchdog = ParseWatchdogMode(settings_.watchdog, "--watchdog"),
                         .watchdog_ratio = settings_.watchdog_ratio,
                         .cost_per_hour = settings_.cost_per_hour});
  for (const std::string& trap : Traps(epoch_)) recorder_->Warn(trap);
}

std::vector<std::string> TrainJob::Traps(const std::optional<EpochCounts>& epoch) const {
  RunSetup setup = {.total_steps = plan_.schedule.total_steps,
                    .warmup_steps = plan_.schedule.warmup_steps,
                    .peak_lr = plan_.schedule.peak_lr,
                    .warmup_is_wanted = settings_.warmup || settings_.warmup_ratio,
                    .batch = plan_.batch,
                    .accum = plan_.accum,
                    .log_every = settings_.log_every,
                    .save_every = SaveEvery(),
                    .eval_every = settings_.eval_every,
                    .has_eval_data = evaluated() != nullptr,
                    .resume = resumed_step_ > 0,
                    .save_model_only = settings_.save_model_only,
                    .fp16_on_cpu = plan_.precision == Precision::kFp16 && device_.is_cpu(),
                    .data_tokens = data_->totals().tokens,
                    .sequence_tokens = plan_.sequence_tokens,
                    .preset = settings_.preset,
                    .preset_batch = context_.preset_batch,
                    .preset_accum = context_.preset_accum};
  // A tenth of the run is nobody's choice, and short runs have none.
  if (settings_.save_every.empty()) setup.save_every = {};
  if (epoch) {
    setup.epoch_samples = static_cast<int64_t>(epoch->samples);
    setup.epoch_tokens = epoch->tokens;
    setup.passes = static_cast<double>(plan_.schedule.total_steps) *
                   static_cast<double>(plan_.samples_per_step()) / static_cast<double>(epoch->samples);
  }
  return FindTraps(setup);
}

bool TrainJob::Due(int64_t every) const {
  return every > 0 && trainer_->step() % every == 0;
}

void TrainJob::Evaluate() {
  if (evaluated() == nullptr || evaluated_step_ == trainer_->step()) return;
  InWhatMemoryThereIs([&] { EvaluateOnce(); });
}

void TrainJob::EvaluateOnce() {
  const auto start = std::chrono::steady_clock::now();
  PerplexityMeter meter(model_.get(), plan_.sequence_tokens, plan_.batch * plan_.sequence_tokens);
  meter.set_masked(IsMasked(evaluated()->header(), plan_.labels_on()));
  meter.set_split(plan_.eval_split);
  try {
    // Documents that are held out lie in the chunks of training, of which some may be left out.
    const bool skip_bad = plan_.eval_split && settings_.skip_bad_chunks > 0;
    const uint64_t skipped =
        meter.AddSet(*evaluated(), static_cast<uint64_t>(settings_.eval_tokens.value_or(0)), {}, skip_bad);
    if (skipped > 0)
      recorder_->Warn("evaluated without " + FormatNumberOf(skipped, "frame") + " that cannot be read");
    meter.Finish();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted && error.code() != ErrorCode::kTerminated) throw;
    return;  // the loop sees the signal and saves
  }
  evaluated_step_ = trainer_->step();
  history_.AddEvaluation(trainer_->step(), meter.sums().mean_loss_nats());
  recorder_->RecordEvaluation(meter.sums(), SecondsSince(start));
}

void TrainJob::FinishSave(bool wait) {
  const std::optional<FinishedSave> finished = wait ? writer_.Wait() : writer_.Poll();
  if (!finished) return;
  saved_ = finished->saved;
  recorder_->RecordCheckpoint(*finished);
}

void TrainJob::FinishCopies(bool wait) {
  if (!copier_) return;
  const size_t waiting = copier_->pinned().size();
  if (wait && waiting > 0) LogInfo("waiting for the copies of " + std::to_string(waiting) + " checkpoints");
  if (wait) copier_->Finish();
  for (const CopyResult& result : copier_->TakeResults()) recorder_->RecordCopy(result);
}

void TrainJob::MakeCopier() {
  if (settings_.copy_to.empty() && settings_.copy_command.empty()) return;
  if (!settings_.copy_to.empty()) {
    std::error_code error;
    const fs::path target = fs::weakly_canonical(settings_.copy_to, error), run = fs::canonical(run_->path());
    if (std::mismatch(run.begin(), run.end(), target.begin(), target.end()).first == run.end()) {
      throw Error(ErrorCode::kUsage, "--copy-to",
                  settings_.copy_to + " is in the run directory " + run_->path(), "",
                  "name a folder outside, best on another disk");
    }
  }
  copier_ = std::make_unique<CheckpointCopier>(
      CopySettings{.folder = settings_.copy_to,
                   .command = settings_.copy_command,
                   .compress = settings_.copy_compress,
                   .retries = settings_.copy_retries,
                   .timeout_s = ParseSaveInterval(settings_.copy_timeout, "--copy-timeout").time_s,
                   .capacity = static_cast<size_t>(settings_.copy_queue),
                   .writer = std::string("train ") + TRAINWRIGHT_VERSION});
}

int TrainJob::CopyAll() {
  MakeCopier();
  if (!copier_) return 0;
  for (const int64_t step : run_->CheckpointSteps()) copier_->Add(step, run_->CheckpointPath(step));
  copier_->Finish();
  for (const CopyResult& result : copier_->TakeResults()) {
    if (!result.copied) LogWarning("no copy of step " + std::to_string(result.step) + ": " + result.problem);
  }
  if (settings_.delete_after_copy) Retain(trainer_->step());
  return copier_->missing().empty() ? 0 : static_cast<int>(ErrorCode::kIo);
}

void TrainJob::Retain(int64_t newest_step) {
  ApplyRetention(
      run_.get(),
      {.newest = settings_.keep, .best = settings_.keep_best, .delete_copied = settings_.delete_after_copy},
      newest_step, copier_.get());
}

nlohmann::ordered_json TrainJob::DescribeRun() const {
  const int64_t step = trainer_->step();
  const std::string precision = PrecisionName(plan_.precision);
  const double time_s = SecondsSince(start_);
  nlohmann::ordered_json run = {{"epoch", stream_->epochs()}};
  run.update(history_.Encode(step));
  run["training_progress"] = {{"completed_steps", step},
                              {"total_steps", plan_.schedule.total_steps},
                              {"total_epochs", stream_->epochs()},
                              {"tokens_seen", trainer_->tokens_seen()}};
  run["system_info"] = {{"cuda_available", device_.is_cuda()}, {"device_count", 1},
                        {"device", compute_.device},           {"cpu_capability", compute_.cpu_capability},
                        {"threads", compute_.threads},         {"mixed_precision", precision}};
  run["model_config"] = provenance_.at("model");
  run["training_config_summary"] = PlanAsOptions(plan_);
  run["additional_metadata"]["optimization_settings"] = {{"mixed_precision", precision},
                                                         {"effective_batch_size", plan_.samples_per_step()}};
  run["volatile"] = {"system_info"};
  if (!trainer_->done()) return run;
  nlohmann::ordered_json& validation = run["validation_metrics"];
  validation["training_completed"] = true;
  validation["total_steps"] = step;
  validation["final_loss"] = run["current_loss"];
  validation["best_loss_achieved"] = run["best_loss"];
  validation["total_epochs"] = stream_->epochs();
  validation["average_loss"] = history_.mean_loss_nats();
  validation["loss_std"] = history_.loss_deviation_nats();
  validation["effective_batch_size"] = plan_.samples_per_step();
  const int64_t steps_here = step - resumed_step_;
  const int64_t tokens_here = trainer_->tokens_seen() - resumed_tokens_;
  run["additional_metadata"]["training_summary"] = {
      {"completed", true},
      {"total_time", time_s},
      {"actual_steps_completed", steps_here},
      {"performance",
       {{"training_time_seconds", time_s},
        {"steps_per_second", static_cast<double>(steps_here) / time_s},
        {"tokens_per_second", static_cast<double>(tokens_here) / time_s}}}};
  run["volatile"].push_back("additional_metadata.training_summary");
  return run;
}

bool TrainJob::SavesWhileTraining() const {
  const SaveInterval every = SaveEvery();
  if (every.time_s > 0 || every.epochs) return true;
  return every.steps > 0 && (plan_.schedule.total_steps - 1) / every.steps > resumed_step_ / every.steps;
}

bool TrainJob::SavesInBackground() {
  if (background_) return *background_;
  if (settings_.async_save == "auto" && !SavesWhileTraining()) return false;
  background_ = settings_.async_save == "on";
  const at::Tensor& values = model_->parameters().values();
  const auto allocate = [&] {
    snapshot_.Allocate(0, values);
    for (const size_t slot : {1, 2}) snapshot_.Allocate(slot, trainer_->exp_avg());
  };
  if (settings_.async_save == "on") allocate();
  if (settings_.async_save == "auto") {
    // By now the steps have what they need.
    AsyncSaveChoice choice =
        ChooseAsyncSave(SnapshotBytes(values.numel(), trainer_->optimizer_bytes()), AvailableMemoryBytes());
    try {
      if (choice.background) allocate();
    } catch (const std::exception&) {  // a limit that the system's free memory does not tell
      snapshot_.Release();
      choice = {.background = false, .reason = "there is no memory for a copy of weights and moments"};
    }
    background_ = choice.background;
    if (!choice.background) recorder_->Warn("checkpoints stall training: " + choice.reason);
  }
  return *background_;
}

void TrainJob::Save() {
  if (saved_step_ == trainer_->step()) return;
  const auto start = std::chrono::steady_clock::now();
  FinishSave(/*wait=*/true);
  const bool background = SavesInBackground();
  writer_.Begin(background, start, [&]() -> CheckpointWriter::Write {
    TrainState state = {.plan = plan_,
                        .trainer = trainer_->state(),
                        .compute = compute_,
                        .order_fingerprint = stream_->fingerprint(),
                        .data_sha256 = HexEncode(data_->content_sha256()),
                        .layout = layout_,
                        .watchdog = recorder_->loss_watchdog().state(),
                        .matrices = matrices_};
    WeightsOutput weights;
    if (background) {
      weights.values = snapshot_.Copy(0, model_->parameters().values());
      state.trainer.exp_avg = snapshot_.Copy(1, state.trainer.exp_avg);
      state.trainer.exp_avg_sq = snapshot_.Copy(2, state.trainer.exp_avg_sq);
    }
    // In the background one thread compresses: the others train.
    const int threads = background ? 1 : static_cast<int>(compute_.threads);
    weights.compress = settings_.compress_model;
    weights.threads = threads;
    CheckpointContent content =
        DescribeCheckpoint(*model_, weights, data_->header().tokenizer, std::move(state), provenance_,
                           {.state = {.on = settings_.compress_state, .threads = threads},
                            .model_only = settings_.save_model_only,
                            .base_model = base_folder_});
    content.metadata.update(DescribeRun());
    return [this, content = std::move(content), report = recorder_->report()] {
      const SavedCheckpoint saved = WriteCheckpoint(run_.get(), content);
      if (copier_) copier_->Add(saved.step, saved.path);
      Retain(saved.step);
      WriteFileAtomically(run_->report_path(), AsBytes(report.Svg()));
      return saved;
    };
  });
  saved_step_ = trainer_->step();
  saved_at_ = background ? start : std::chrono::steady_clock::now();
  if (!background) FinishSave(/*wait=*/true);
}

int64_t TrainJob::EvalEvery() const {
  return settings_.eval_every.value_or(TenthOfRun());
}

bool TrainJob::StoppedEarly() const {
  return settings_.early_stop &&
         history_.steps_since_best_evaluation() >= *settings_.early_stop * std::max<int64_t>(1, EvalEvery());
}

int TrainJob::Loop() {
  const int64_t eval_every = EvalEvery();
  const SaveInterval save_every = SaveEvery();
  const double limit_s = settings_.max_minutes * 60;
  const int64_t first = trainer_->step();

  if (trainer_->step() == 0) Evaluate();
  while (!trainer_->done() && StopSignal() == 0 && !StoppedEarly()) {
    // On a GPU a look at the step's numbers waits for all queued work, so it is taken only where they are
    // used.
    const int64_t next = trainer_->step() + 1;
    const auto due = [&](int64_t every) { return every > 0 && next % every == 0; };
    const bool time_to_save = save_every.time_s > 0 && SecondsSince(saved_at_) >= save_every.time_s;
    const bool read = next == plan_.schedule.total_steps || next <= first + 2 || due(settings_.log_every) ||
                      due(eval_every) || due(save_every.steps) || time_to_save;
    const double epochs_before = stream_->epochs();
    FinishSave(/*wait=*/false);
    const bool saving = writer_.busy();
    const StepReport report = InWhatMemoryThereIs([&] { return trainer_->Step(read); });
    recorder_->RecordStep(report, stream_->epochs(), saving);
    if (next == first + 1) SavesInBackground();
    if (report.read && report.labels > 0) history_.AddStep(report.step, report.loss_nats, report.lr);
    FinishCopies(/*wait=*/false);

    const bool stopping = StopSignal() != 0 || (limit_s > 0 && SecondsSince(start_) > limit_s) ||
                          recorder_->stop_reason().has_value();
    const bool epoch_ended = save_every.epochs && std::floor(stream_->epochs()) > std::floor(epochs_before);
    const bool saves = stopping || Due(save_every.steps) || time_to_save || epoch_ended || trainer_->done();
    if (!stopping && (Due(eval_every) || trainer_->done() || (saves && settings_.keep_best > 0))) Evaluate();
    if (saves || StoppedEarly()) Save();
    if (stopping) break;
  }
  Save();
  FinishSave(/*wait=*/true);
  FinishCopies(/*wait=*/true);
  const int signal_number = StopSignal();
  int status = 0;
  std::string reason = "complete";
  if (recorder_->stop_reason()) {
    status = static_cast<int>(ErrorCode::kNonFinite);
    reason = *recorder_->stop_reason();
  } else if (!trainer_->done() && StoppedEarly()) {
    reason = "early stop";
    LogInfo("stopped early: the last " + std::to_string(*settings_.early_stop) +
            " evaluations were no better than that after step " +
            std::to_string(trainer_->step() - history_.steps_since_best_evaluation()));
  } else if (!trainer_->done()) {
    status = signal_number == 0 ? 0 : 128 + signal_number;
    reason = signal_number != 0 ? "signal" : "time limit";
  }
  if (copier_ && settings_.delete_after_copy) Retain(trainer_->step());
  if (status == 0 && copier_ && !copier_->missing().empty()) {
    status = static_cast<int>(ErrorCode::kIo);
    reason += ", but copies of checkpoints are missing";
  }
  recorder_->set_memory(HeldMemory(), PeakResidentBytes() + PeakDeviceBytes(device_));
  if (offload_.any()) recorder_->set_offload(model_->offload_counts());
  recorder_->RecordEnd(status, reason);
  return status;
}

}  // namespace

int RunTraining(const TrainSettings& settings, const TrainJobContext& context,
                nlohmann::ordered_json* summary) {
  TrainJob job(settings, context);
  return WithMemoryErrors([&] { return job.memory_user(); }, [&] { return job.Run(summary); });
}

}  // namespace trainwright
