/// What a training run tells about itself while it runs: one call a happening, which becomes a record in
/// metrics.jsonl, scalars for TensorBoard, a line on the console and a state of the progress bar; report.svg
/// is made anew with every checkpoint, and with report.html and training_metrics.json at the end.
///
/// It only listens: nothing here decides what is computed. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/device/offload_stack.h"
#include "lib/eval/perplexity.h"
#include "lib/formats/tensorboard.h"
#include "lib/report/progress.h"
#include "lib/run/metrics_log.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_report.h"
#include "lib/run/train_plan.h"
#include "lib/run/watchdog.h"
#include "lib/train/checkpoint_writer.h"
#include "lib/train/checkpointer.h"
#include "lib/train/memory_breakdown.h"
#include "lib/train/model_flops.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// A set of shards that a run reads.
struct DataSource {
  std::string path;
  double share = 1;  ///< of the chunks drawn
  uint64_t chunks = 0, tokens = 0;
};

/// What is fixed while one process works on a run.
struct RunFacts {
  TrainPlan plan;
  ModelConfig model;
  StepFlops flops;         ///< of what the run trains
  int64_t parameters = 0;  ///< tied ones once
  ComputeIdentity compute;
  std::optional<double> peak_tflops;             ///< of the device, for MFU; absent: unknown
  uint64_t data_tokens = 0, data_documents = 0;  ///< of the training set
  SplitCounts held_out;                          ///< of it, by the plan's split
  std::string data_sha256, tokenizer_sha256;     ///< in hexadecimal
  std::vector<DataSource> sources;               ///< that it is mixed from, or one
  std::string data_path, eval_data_path;         ///< as the user gave them, for the hints at the end
  std::vector<std::string> argv;
  std::chrono::steady_clock::time_point start;  ///< of the process
  int64_t first_step = 0;                       ///< steps taken before this process
  int64_t tokens_before = 0;                    ///< tokens of those steps
};

struct RunRecorderOptions {
  int64_t log_every = 1;  ///< steps between records of steps
  ProgressMode progress = ProgressMode::kAuto;
  WatchdogMode watchdog = WatchdogMode::kWarn;  ///< kOff silences data and memory warnings, too
  double watchdog_ratio = 1.5;                  ///< > 1
  std::optional<double> cost_per_hour;          ///< of the machine, in any currency
};

class RunRecorder {
 public:
  /// What the end of the run tells of its memory.
  void set_memory(const MemoryBreakdown& memory, int64_t peak_bytes) { memory_ = {memory, peak_bytes}; }
  /// What went out of the device's memory and in again in this process.
  void set_offload(const OffloadCounts& counts) { offload_ = counts; }
  /// Another split of the same steps into micro-batches.
  void set_plan(const TrainPlan& plan) { facts_.plan = plan; }
  /// Removes what a run directory tells about steps above `step`, so that a run that goes on from a
  /// checkpoint of that step reads as one; -1 removes everything.
  /// \throws Error{kIo, kBadInput}
  static void CutBack(const RunDirectory& run, int64_t step);

  /// Opens the run's records and writes run_begin.
  /// \param run outlives the recorder
  /// \throws Error{kIo}
  RunRecorder(const RunDirectory* run, RunFacts facts, const RunRecorderOptions& options);

  /// Whether the step of that number gets a record.
  bool Logs(int64_t step) const;
  /// Called once for every step, in order.
  /// \param epochs passes over the data so far
  /// \param saving whether a checkpoint was being written meanwhile
  void RecordStep(const StepReport& report, double epochs, bool saving = false);
  /// Why the watchdog wants the run to save and stop; absent while it does not.
  const std::optional<std::string>& stop_reason() const { return stop_reason_; }
  /// Watches over the losses that get a record; its state goes into checkpoints.
  LossWatchdog& loss_watchdog() { return loss_watchdog_; }
  void RecordEvaluation(const PerplexitySums& sums, double eval_time_s);
  /// Called when a save has ended, perhaps some steps later.
  void RecordCheckpoint(const FinishedSave& save);
  void RecordCopy(const CopyResult& result);
  /// The report of the records so far, to be drawn and written while training goes on.
  const RunReport& report() const { return report_; }
  /// A message to the user, on the console and in the records.
  void Warn(const std::string& message);
  /// The last record of the process.
  /// \param reason "complete", "time limit", "signal", or an error's text
  void RecordEnd(int exit_status, const std::string& reason);

  /// Tells how the run went and what to do next.
  /// \param saved the newest checkpoint
  void PrintReport(int exit_status, const SavedCheckpoint& saved) const;
  /// The counts of the run for --summary.
  nlohmann::ordered_json Summary(const SavedCheckpoint& saved) const;

 private:
  /// Writes a record and hands it to the report.
  void Write(const std::string& type, const nlohmann::ordered_json& fields);
  void WriteStep(const StepReport& report, double epochs, bool saving);
  void Watch(const StepReport& report, int64_t resident_bytes);
  void WriteReport() const;
  bool complete() const { return step_ >= facts_.plan.schedule.total_steps; }
  /// Tokens a second of this process's steps; 0 before the first.
  double MeanTokensPerSecond() const;
  double MeanStepsPerSecond() const;
  double MeanModelFlopsPerSecond() const;
  /// Model FLOPs utilisation at a rate; absent where the device's peak is not known.
  std::optional<double> Mfu(double model_flops_per_s) const;
  /// What evaluate needs to measure the held-out documents; empty without a split.
  std::string SplitFlags() const;
  void PrintPace(const StepReport& report) const;
  /// Of this process so far; absent without a rate.
  std::optional<double> Cost() const;

  const RunDirectory* run_;
  RunFacts facts_;
  std::optional<OffloadCounts> offload_;
  std::optional<std::pair<MemoryBreakdown, int64_t>> memory_;  ///< and the peak
  RunRecorderOptions options_;
  MetricsLog metrics_;
  TensorboardWriter tensorboard_;
  RunReport report_;
  LossWatchdog loss_watchdog_;
  DataWaitMonitor data_wait_monitor_;
  MemoryMonitor memory_monitor_;
  std::optional<std::string> stop_reason_;
  bool evaluated_ = false, saved_ = false;  // in this process
  std::unique_ptr<Progress> progress_;

  int64_t step_, tokens_seen_;          ///< of the run so far
  double training_s_ = 0;               ///< in this process's steps
  std::vector<int64_t> source_tokens_;  ///< of this process's steps; empty: one source
  int64_t copies_ = 0;                  ///< made by this process
  double save_stall_s_ = 0, save_wait_s_ = 0, writer_cpu_s_ = 0;  ///< of this process's saves
  double model_flops_ = 0;                                        ///< of this process's steps
  double seen_cpu_s_ = 0;  ///< processor time at the step record before
  std::chrono::steady_clock::time_point seen_at_;
  std::optional<double> first_loss_nats_, last_loss_nats_;
  std::optional<double> first_eval_nats_, last_eval_nats_;
};

}  // namespace trainwright
