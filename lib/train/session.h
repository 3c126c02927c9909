/// One process's work on a training run: steps, evaluations and checkpoints until the run is complete, its
/// time is up, a signal or the watchdog stops it, or an error ends it.
///
/// What only this process knows (signals, the clock, the watchdog, memory that ran out) is agreed on with the
/// other ranks before anything follows from it; only the writer's rank has files. Not thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/device/memory_error.h"
#include "lib/dist/facts.h"
#include "lib/dist/shard_reader.h"
#include "lib/dist/world.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/run/training_history.h"
#include "lib/train/evaluator.h"
#include "lib/train/model_setup.h"
#include "lib/train/profile_recorder.h"
#include "lib/train/resolved_run.h"
#include "lib/train/run_checkpoint_source.h"
#include "lib/train/run_memory.h"
#include "lib/train/run_recorder.h"
#include "lib/train/saver.h"
#include "lib/train/train_job.h"
#include "lib/train/trainer.h"

namespace trainwright {

class Session {
 public:
  /// Makes model and trainer, without a call of the world.
  /// \param settings, context, world, run outlive the session
  /// \param directory of the run; null on the other ranks
  /// \throws Error{kUsage, kBadInput, kIo}
  Session(const TrainSettings& settings, const TrainJobContext& context, World* world, ResolvedRun* run,
          std::unique_ptr<RunDirectory> directory);
  ~Session();
  /// Opens the records of the run on the writer's rank, and trains to the end of this process's part.
  /// \returns the exit status
  /// \throws Error, recorded once there are records
  int Run();
  /// The counts of the run for --summary; of other ranks than the writer's the steps alone.
  nlohmann::ordered_json Summary() const;
  int64_t step() const { return trainer_->step(); }
  const TrainPlan& plan() const { return trainer_->plan(); }
  SessionPoint point() const {
    return {.plan = plan(),
            .step = step(),
            .snapshot_bytes = saver_ ? saver_->snapshot_bytes() : 0,
            .samples = trainer_->samples()};
  }

 private:
  /// Leaves this rank its part of what the plan divides.
  void Shard();
  void MakeTrainer(const TrainJobContext& context);
  /// Makes the rest, once all ranks have the same kernels; without a call of the world.
  void Open();
  /// Opens the records of this process, once model, stream and trainer are at its first step.
  void OpenRecorder(const TrainJobContext& context);
  /// Says what a resumed run does otherwise than the run before.
  void WarnOfChanges();
  int Loop();
  /// One step and what is due after it.
  /// \returns whether the process is to stop
  bool StepAndSave(bool time_to_save);
  /// What the process before this one left; the checkpoint that the run goes on from gets it, too.
  void EvaluateBeforeSteps();
  /// Whether --early-stop ends the run here.
  bool StoppedEarly() const;
  void EvaluateIfDue();
  /// Saves where this rank writes; the others give it their shards.
  void Save();
  int End();
  /// Reports to the other ranks, then ends the records and the files of this one.
  void RecordFailure(const Error& error);
  void FinishFiles(bool wait);
  /// The largest signal that any rank got.
  int AgreedSignal();
  /// Does what may run out of memory; under --auto-oom again, in halved micro-batches, until it has room.
  template <typename Work>
  auto InWhatMemoryThereIs(const Work& work);

  const TrainSettings& settings_;
  const TrainJobContext& context_;
  World* world_;
  ResolvedRun* run_;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<RunDirectory> directory_;  // null where this rank writes nothing
  ModelSetup setup_;
  Facts start_facts_;  // that ranks compare before the first step
  std::unique_ptr<Trainer> trainer_;
  int64_t first_step_ = 0;
  TrainingHistory history_;
  std::unique_ptr<RunListener> listener_;
  RunRecorder* recorder_ = nullptr;            // the listener where this rank writes; else null
  std::unique_ptr<ProfileRecorder> profiler_;  // null without --profile, and where this rank writes nothing
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<ShardReader> shards_;  // null where nothing is sharded
  std::unique_ptr<RunCheckpointSource> source_;
  std::unique_ptr<Saver> saver_;  // last: its thread uses the others; null where this rank writes nothing
  struct {
    int signal = 0;
    bool watchdog = false, early = false;  // of any rank
  } ends_by_;                              // what ended the loop
};

}  // namespace trainwright
