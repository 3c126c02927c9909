/// What a training run will do, decided once at its start and stored in every checkpoint: two runs with equal
/// plans, data and weights are the same run.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/loading/document_split.h"
#include "lib/loading/sample_stream.h"
#include "lib/nn/precision.h"
#include "lib/run/train_settings.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/model_config.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/optimizer_options.h"
#include "lib/spec/schedule.h"

namespace trainwright {

struct TrainPlan {
  int64_t batch = 1;  ///< samples of a micro-batch
  int64_t accum = 1;  ///< micro-batches of an optimizer step
  int64_t sequence_tokens = 512;
  uint64_t window_chunks = 64;
  uint64_t seed = 0;
  Precision precision = Precision::kFp32;
  ScheduleOptions schedule;  ///< its total_steps is the length of the run
  OptimizerOptions optimizer;
  double clip = 1.0;                     ///< largest gradient norm; 0: none
  std::string objective = kLmObjective;  ///< its name in the registry
  LossOn loss_on = LossOn::kAssistant;   ///< of sft
  double z_loss = 0, label_smoothing = 0;
  std::map<std::string, double> objective_own = {};  ///< options that only the objective has
  FineTuning tuning;                                 ///< what is trained
  std::optional<DocumentSplit> eval_split;  ///< of the data, whose held-out documents are evaluated on
  bool drop_last = false;                   ///< skip the samples left of an epoch that do not fill a step
  uint64_t block_chunks = 1;                ///< of the data, that stay together
  std::string data_weights;  ///< as ParseMixtureWeights takes it; empty: each chunk once an epoch
  std::string
      length_rule;  ///< what fixed the number of steps: "steps 100", "epochs 2", "tokens 1000000", "default"

  int64_t samples_per_step() const { return batch * accum; }
  /// What of sft records the labels are, in training and in evaluation.
  LossOn labels_on() const { return objective == kSftObjective ? loss_on : LossOn::kAll; }
  SampleStreamOptions stream_options() const;
};

nlohmann::ordered_json EncodePlan(const TrainPlan& plan);
/// \throws Error{kBadInput} naming `path` when a field is missing or has the wrong type
TrainPlan DecodePlan(const nlohmann::json& json, const std::string& path);

/// Why an option that the user left open has its value.
struct ChoiceReason {
  std::string option;    ///< "batch"
  std::string text;      ///< a sentence without the option's name
  std::string headline;  ///< what the console says before it at the start of a run; empty: nothing
  std::string line() const { return headline + ": " + text; }
};

/// A plan, and the reasons of what the user did not choose.
struct PlannedRun {
  TrainPlan plan;
  std::vector<ChoiceReason> reasons;
  std::optional<EpochCounts> epoch;  ///< where it was counted
};

/// The plan as values of the command line's options, by name: given to another run they make the same plan.
nlohmann::ordered_json PlanAsOptions(const TrainPlan& plan);

/// What the user asks to train.
/// \throws Error{kUsage} on flags that contradict each other or an adapter; Error{kBadInput, kIo} on an
///     adapter that cannot be read
FineTuning PlanTuning(const TrainSettings& settings);

/// Fills in what the user left open.
/// \param count_epoch counts an epoch of samples cut to the given length; called only where the length
///     depends on it
/// \param records of the data
/// \param eval_split what of the data is held out
/// \throws Error{kUsage} on values out of range or flags that exclude each other; Error{kBadInput} when the
///     data does not say what the objective asks for
PlannedRun PlanRun(const TrainSettings& settings, const ModelConfig& model, at::Device device,
                   const std::function<EpochCounts(const SampleStreamOptions&)>& count_epoch,
                   RecordKind records = RecordKind::kLm, const std::optional<DocumentSplit>& eval_split = {});

/// Checks the flags of a resumed run against its stored plan. Flags that repeat the plan are fine; another
/// split of the same step into micro-batches is taken over into `plan`.
/// \returns warnings
/// \throws Error{kUsage} on a flag that asks for another run
std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan);

}  // namespace trainwright
