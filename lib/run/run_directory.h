/// The folder of one training run:
///
///   runs/<name>/run.json                 the run's plan, model and data: lib/run/run_record.h
///               config.yaml              what was asked for and what was chosen; reloads with --config
///               metrics.jsonl            trainwright-metrics(5)
///               checkpoints/step-NNNNNNNN/   trainwright-checkpoint(5)
///               tb/                      TensorBoard event files
///               report.svg               the metrics as curves
///               report.html              these and what the run is, on one page
///               training_metrics.json    losses and learning rates as arrays
///               profile/trace.json       with --profile, the newest process's timeline
///               latest                   symbolic link to the newest checkpoint
///               best                     with --keep-best, to the one of the lowest evaluation loss
///               complete.json            only of a run that has nothing left to do
///               .lock                    held while a process trains into the folder
///
/// Not thread-safe; one per training process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/io/folder_lock.h"

namespace trainwright {

// Files of a run directory that are also looked for where nobody may lock it.
inline constexpr char kRunRecordFile[] = "run.json", kRunOptionsFile[] = "config.yaml",
                      kRunMetricsFile[] = "metrics.jsonl", kRunCompletionFile[] = "complete.json",
                      kRunTraceFile[] = "profile/trace.json";

/// Where runs are that have no name.
inline constexpr char kRunsFolder[] = "runs";

/// Whether a folder holds a run that has begun: its record or a checkpoint. Nothing is locked or changed.
bool HoldsRun(const std::string& run);

/// The run directory that has the checkpoint of this path, which may lead there by links: latest, best. Its
/// path is absolute. nullopt: the path leads to no checkpoint of a run.
std::optional<std::string> RunOfCheckpoint(const std::string& path);

class RunDirectory {
 public:
  /// Creates `path` where needed, locks it and removes what a killed process left half-written, as
  /// DeleteCheckpoint does.
  /// \throws Error{kUsage} when another process holds it, Error{kIo}
  explicit RunDirectory(std::string path);

  /// Makes and takes the first free of `<parent>/<stem>-001`, -002, ...; safe against other processes doing
  /// the same.
  static RunDirectory CreateNumbered(const std::string& parent, const std::string& stem);
  /// The run in `parent` that was written to last; nullopt when it holds none.
  static std::optional<std::string> Newest(const std::string& parent);

  const std::string& path() const { return path_; }
  std::string metrics_path() const { return path_ + "/" + kRunMetricsFile; }
  std::string config_path() const { return path_ + "/" + kRunOptionsFile; }
  std::string record_path() const { return path_ + "/" + kRunRecordFile; }
  std::string tensorboard_path() const { return path_ + "/tb"; }
  std::string report_path() const { return path_ + "/report.svg"; }
  std::string trace_path() const { return path_ + "/" + kRunTraceFile; }
  std::string completion_path() const { return path_ + "/" + kRunCompletionFile; }
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  /// `<path>/checkpoints/step-00000100`.
  std::string CheckpointPath(int64_t step) const;
  /// Steps that have a checkpoint folder, rising.
  std::vector<int64_t> CheckpointSteps() const;
  /// The same of a run that another process may be writing: nothing is locked or changed. Empty where there
  /// is no such run.
  static std::string CheckpointPathIn(const std::string& run, int64_t step);
  /// The step that the folder of a checkpoint is named by; nullopt for other names.
  static std::optional<int64_t> StepOfCheckpoint(const std::string& path);
  static std::vector<int64_t> CheckpointStepsIn(const std::string& run);
  static std::vector<std::string> CheckpointsIn(const std::string& run_path);

  /// Opens a folder that will become the checkpoint of `step`, and returns its temporary path.
  std::string BeginCheckpoint(int64_t step);
  /// Makes the folder of BeginCheckpoint the checkpoint of `step`, durable files assumed, and points `latest`
  /// at it. One that was there before is replaced.
  /// \throws Error{kIo}; the new one is then either not there, and has_begun() still holds, or in place but
  ///     perhaps not durable
  void CommitCheckpoint(int64_t step);
  /// Deletes the folder of an uncommitted BeginCheckpoint, if there is one. Never throws.
  void AbandonCheckpoint() noexcept;
  /// Whether a checkpoint is begun and not committed.
  bool has_begun() const { return !begun_.empty(); }
  /// Deletes all but the newest `keep` checkpoints (0: deletes none) and those of the spared steps. Those of
  /// later steps than the one just written, corrupt or of a run that was set back, neither count nor go. What
  /// could not be deleted before is tried again, whatever `keep` is.
  void RotateCheckpoints(int64_t keep, int64_t newest_step, const std::set<int64_t>& spared = {});
  /// Deletes a checkpoint; it is never seen half-deleted. Where it cannot be deleted, a warning says so, and
  /// RotateCheckpoints tries again, as does the next process.
  void DeleteCheckpoint(int64_t step);
  /// Points the link `latest` at a checkpoint, where it does not yet: a process may have been killed between
  /// the two renames of CommitCheckpoint.
  /// \throws Error{kIo}
  void PointLatestAt(int64_t step);
  /// Points the link `best` at a checkpoint, or removes it.
  /// \throws Error{kIo}
  void PointBestAt(std::optional<int64_t> step);

 private:
  /// Deletes a folder of `checkpoints` under a hidden name, with a warning where that fails.
  void Discard(const std::string& path);
  /// The name under which a link is made.
  std::string NewLink(const std::string& link) const;
  /// Points a link of the run directory at a checkpoint.
  void Point(const std::string& link, int64_t step);

  std::string path_;
  std::unique_ptr<FolderLock> lock_;
  std::string begun_;                // the temporary folder, or empty
  std::set<std::string> undeleted_;  // hidden folders whose deletion failed
  std::set<std::string> unmoved_;    // checkpoints that could not be hidden
};

}  // namespace trainwright
