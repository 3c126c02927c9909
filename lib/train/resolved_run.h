/// A training run with everything decided and nothing written: what --dry-run and --explain print, and what a
/// session trains.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/loading/sample_indexes.h"
#include "lib/loading/sample_loaders.h"
#include "lib/memory/training_memory.h"
#include "lib/model/model_watch.h"
#include "lib/run/run_planner.h"
#include "lib/run/run_record.h"
#include "lib/run/train_settings.h"
#include "lib/run/training_data.h"
#include "lib/run/training_history.h"
#include "lib/train/cadence.h"
#include "lib/train/choice_log.h"
#include "lib/train/compute_choice.h"
#include "lib/train/model_choice.h"
#include "lib/train/train_job.h"
#include "lib/train/train_state.h"

namespace trainwright {

/// Where a run goes on.
struct ResumePoint {
  std::string checkpoint;                 ///< its folder
  TrainState state;                       ///< with the place in the data that the run goes on at
  nlohmann::ordered_json stored_options;  ///< of the plan as it was stored
  std::vector<std::string> warnings;      ///< of what differs from the settings
  bool data_changed = false;              ///< another data set, which is read from its beginning
  bool of_parent = false;                 ///< the checkpoint is another run's, of which this is a branch
  /// Set; to be asked once the weights are loaded, and again once the state, which may be mapped, is taken
  /// over.
  std::optional<ModelWatch> watch = {};
};

/// Filled part by part, in this order.
struct ResolvedRun {
  ComputeChoice compute;
  int64_t device_share_bytes = 0;  ///< see LeastDeviceShare
  std::unique_ptr<TrainingData> data;
  std::optional<ResumePoint> resume;       ///< nullopt: a new run
  std::optional<ParentCheckpoint> parent;  ///< of a branch
  ModelChoice model;
  TrainPlan plan;
  Cadence cadence;
  std::optional<EpochCounts> epoch;  ///< of the data, where the plan needed it
  SplitCounts held_out;              ///< of the data; zeros without a split
  OpenedLoaders loaders;             ///< at the run's first sample; they read `data`
  /// Of the samples that were counted to open loaders, of these or of others.
  std::shared_ptr<SampleIndexes> indexes = std::make_shared<SampleIndexes>();
  std::string begun_in;  ///< folder that relative paths in a stored plan start from; empty: this process's
  /// Why model and plan are as they are; the first lines of a new run report it.
  std::vector<ChoiceReason> opening_reasons;

  /// Of kMainLoader, which must be open: the samples whose order and epochs are the run's.
  const SampleLoader& stream() const { return *loaders.at(kMainLoader); }
  /// How far it is in them.
  double epochs() const { return EpochsOf(LoadersOf(loaders)); }
  /// Whether the step of `now`, the run's plan as it is, that was taken last ended an epoch.
  bool EndedEpoch(double epochs_before, const TrainPlan& now) const {
    return trainwright::EndedEpoch(LoadersOf(loaders), epochs_before, now.samples_per_step(), now.drop_last);
  }
};

/// What the memory of a run depends on.
/// \param plan of the run, which may have changed since it was resolved
MemoryRequest MemoryOf(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan);

/// The samples of a run from the first on, apart from the run's own loaders, which stay where they are.
/// \param plan of the run, which may be one that it was not resolved to
OpenedLoaders OpenLoadersApart(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan);

/// What of a GPU's memory each rank has at least, divided by those that share one and at most the cap; all
/// ranks call together. 0: it is not known of one, or the device is the CPU.
/// \throws as World::Reduce
int64_t LeastDeviceShare(const TrainJobContext& context, c10::Device device);

/// What asks for another run than the stored one, or cannot be, is refused here, before anything is written.
/// \param run with compute and data
/// \throws Error{kUsage, kBadInput, kIo}
void ResolveNewRun(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                   ResolvedRun* run);

/// Names what the run is evaluated on, and how long its samples are: losses of one name can be compared. "":
/// it is not evaluated.
std::string EvaluationNameOf(const TrainSettings& settings, const ResolvedRun& run);

/// Whether a process that begins at this step begins with an evaluation: the first step is to come (of a
/// branch, whose parent was not evaluated there), or the process before this one was stopped at a step, or in
/// its evaluation, and left that to this one, or it evaluated on other data.
/// \param history of the run up to the step
bool LacksEvaluation(const ResolvedRun& run, const TrainingHistory& history, int64_t step);

/// What of the settings together makes another run than was meant.
/// \param run with its loaders
std::vector<std::string> TrapsOf(const TrainSettings& settings, const TrainJobContext& context,
                                 const ResolvedRun& run);

}  // namespace trainwright
