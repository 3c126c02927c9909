/// The checkpoints of a training run as they come: written in the foreground or from a copy in the
/// background, copied to other places, and deleted when newer ones are there.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/checkpoint/checkpoint_writer.h"
#include "lib/checkpoint/retention.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/train/run_listener.h"
#include "lib/train/snapshot_buffers.h"

namespace trainwright {

/// What of a run a checkpoint is made of; called on the training thread between two steps.
class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;
  /// The tensors that training goes on changing, live: weights first, then the optimizer's states. Their
  /// number and shapes stay.
  virtual std::vector<at::Tensor> LiveTensors() = 0;
  /// Whether checkpoints may be made of copies.
  virtual bool allows_copies() const { return true; }
  /// The checkpoint of the present step.
  /// \param tensors LiveTensors() or copies of them
  /// \param are_copies whether training goes on while they are written
  virtual CheckpointContent Describe(const std::vector<at::Tensor>& tensors, bool are_copies) = 0;
  /// Changes metadata.json of the present step's checkpoint so that it has the evaluation that came after it
  /// was written.
  virtual void DescribeEvaluation(nlohmann::ordered_json* metadata) const = 0;
};

/// Not thread-safe: the training thread's.
class Saver {
 public:
  /// \param start of the process: what is saved by the clock is saved that long after it
  /// \param saves_between whether a checkpoint is due before the end of the run
  /// \param run, source, listener outlive it
  /// \throws Error{kUsage} on a folder of copies inside the run
  Saver(const TrainSettings& settings, std::chrono::steady_clock::time_point start, bool saves_between,
        RunDirectory* run, CheckpointSource* source, RunListener* listener);

  /// Begins to save the state after `step`, unless it is saved.
  /// \throws what the save before threw, and in the foreground this one
  void Save(int64_t step);
  /// Records a background save that has ended, if one has.
  /// \param wait until none is under way
  /// \throws its error
  void FinishSave(bool wait);
  /// Whether saves are written in the background. The first call, after a step, gets memory for their copies.
  bool SavesInBackground();
  /// Whether a save is being written.
  bool busy() const { return writer_.busy(); }
  std::chrono::steady_clock::time_point saved_at() const { return saved_at_; }
  /// The last save that has ended.
  const SavedCheckpoint& saved() const { return saved_; }
  int64_t snapshot_bytes() const { return snapshot_.size_bytes(); }

  /// The run goes on from this checkpoint: it is saved already, and it or those before perhaps not copied.
  void GoOnFrom(int64_t step, const std::string& checkpoint);
  /// The checkpoint that the run goes on from gets the evaluation that was left to this process.
  /// \throws Error{kIo, kBadInput}
  void AddEvaluation(int64_t step);
  /// Records the copies that have ended.
  /// \param wait until none is under way or waits
  /// \param look as in CheckpointCopier::Finish
  void FinishCopies(bool wait, const std::function<void()>& look = {});
  /// Gives up the copy under way and those that wait, with a warning: a process that continues the run
  /// makes them. Returns at once.
  void AbandonCopies();
  /// Steps that were saved and have no copy, though copies are asked for.
  std::set<int64_t> MissingCopies() const;
  /// Deletes what stayed for its copy alone, and where that is asked for, what has one.
  void RotateCopied(int64_t newest_step);

 private:
  std::vector<at::Tensor> Copy(const std::vector<at::Tensor>& live);

  std::string async_save_;
  bool saves_between_;
  Retention retention_;
  RunDirectory* run_;
  CheckpointSource* source_;
  RunListener* listener_;
  std::unique_ptr<CheckpointCopier> copier_;                   // null: no copies
  std::set<std::pair<int64_t, std::string>> recorded_copies_;  // of earlier processes: step and place
  SnapshotBuffers snapshot_;
  std::optional<bool> background_;  // once it was asked
  SavedCheckpoint saved_;
  std::optional<int64_t> saved_step_;
  std::chrono::steady_clock::time_point saved_at_;
  CheckpointWriter writer_;  // last: its thread uses the others
};

}  // namespace trainwright
