/// What a training run reports about itself while it runs: one call a happening, which becomes a record in
/// metrics.jsonl, scalars for TensorBoard, a line on the console and a state of the progress bar; report.svg
/// is made again with every checkpoint, and with report.html and training_metrics.json at the end.
///
/// It only listens: nothing here decides what is computed. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/checkpoint/checkpoint_writer.h"
#include "lib/device/offload_stack.h"
#include "lib/formats/tensorboard.h"
#include "lib/objective/evaluation.h"
#include "lib/objective/objective.h"
#include "lib/profile/step_profile.h"
#include "lib/report/progress.h"
#include "lib/run/metrics_log.h"
#include "lib/run/rank_records.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_report.h"
#include "lib/run/train_plan.h"
#include "lib/run/training_data.h"
#include "lib/run/watchdog.h"
#include "lib/spec/memory_parts.h"
#include "lib/spec/model_flops.h"
#include "lib/train/run_listener.h"
#include "lib/train/run_totals.h"
#include "lib/train/tf32_error.h"
#include "lib/train/train_state.h"
#include "lib/train/trainer.h"
#include "lib/train/value_types.h"

namespace trainwright {

/// What is fixed while one process works on a run.
struct RunFacts {
  TrainPlan plan;
  ModelConfig model;
  StepFlops flops;  ///< of what the run trains
  std::vector<LossTerm> loss_terms;
  int64_t parameters = 0;  ///< tied ones once
  ComputeIdentity compute;
  std::string kernels;                           ///< as of kernel_names.h
  std::optional<ValueTypes> types = {};          ///< of the model's values
  std::optional<Tf32Error> tf32_error = {};      ///< where fp32 GEMMs round to TF32
  std::optional<double> peak_tflops;             ///< of the device, for MFU; absent: unknown
  uint64_t data_tokens = 0, data_documents = 0;  ///< of the training set
  SplitCounts held_out;                          ///< of it, by the plan's split
  std::string data_sha256, tokenizer_sha256;     ///< in hexadecimal
  std::vector<DataSource> sources;               ///< that it is mixed from, or one
  /// Paths, or "-", for the hints at the end; of what is held out those of `sources`.
  std::vector<std::string> data_to_evaluate;
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
  /// The share of time in which the GPU was busy lately; empty: there is none.
  std::function<std::optional<double>()> gpu_use = {};
  /// The most that tensors have taken of the GPU's memory; empty: there is none.
  std::function<int64_t()> device_bytes = {};
};

class RunRecorder final : public RunListener {
 public:
  /// Opens the run's records and writes run_begin.
  /// \param run outlives the recorder
  /// \throws Error{kIo}
  RunRecorder(const RunDirectory* run, RunFacts facts, const RunRecorderOptions& options);

  /// Whether the step of that number gets a record.
  bool Logs(int64_t step) const;
  void RecordStep(const StepReport& report, double epochs, bool saving) override;
  /// Watches over the losses that get a record; its state goes into checkpoints.
  LossWatchdog& loss_watchdog() { return loss_watchdog_; }
  void RecordEvaluation(const Evaluation& evaluation, double eval_time_s) override;
  void RecordCheckpoint(const FinishedSave& save) override;
  void RecordCopy(const CopyResult& result) override;
  void RecordProfile(const StepProfile& profile, const std::string& trace_problem) override;
  /// On the console and in the records.
  void Warn(const std::string& message) override;
  void RecordWarning(const std::string& message) override;
  void RecordEnd(int exit_status, const std::string& reason) override;
  void set_plan(const TrainPlan& plan) override { facts_.plan = plan; }
  void set_memory(const MemoryParts& memory, int64_t peak_bytes) override {
    told_.memory = {memory, peak_bytes};
  }
  void set_ranks(const RankRecords& ranks) override { ranks_ = ranks; }
  void set_offload(const OffloadCounts& counts) override { told_.offload = counts; }
  void set_graphs(const GraphCounts& counts) override { told_.graphs = counts; }
  std::optional<std::string> stop_reason() const override { return stop_reason_; }
  nlohmann::json watchdog_state() const override { return loss_watchdog_.state(); }
  RunReport report() const override { return report_; }

  /// Says how the run went and what to do next.
  /// \param saved the newest checkpoint
  void PrintReport(int exit_status, const SavedCheckpoint& saved) const;
  /// The counts of the run for --summary.
  nlohmann::ordered_json Summary(const SavedCheckpoint& saved) const;

 private:
  /// Writes a record and hands it to the report.
  void Write(const std::string& type, const nlohmann::ordered_json& fields);
  void WriteStep(const StepReport& report, double epochs, bool saving);
  void Watch(const StepReport& report, int64_t resident_bytes, const std::optional<double>& gpu_use);
  void WriteReport() const;
  /// Model FLOPs utilisation at a rate; absent where the device's peak is not known.
  std::optional<double> Mfu(double model_flops_per_s) const;
  void PrintPace(const StepReport& report) const;
  /// Of this process so far; absent without a rate.
  std::optional<double> Cost() const;

  const RunDirectory* run_;
  RunFacts facts_;
  RunRecorderOptions options_;
  struct {
    std::optional<OffloadCounts> offload;
    std::optional<GraphCounts> graphs;
    std::optional<std::pair<MemoryParts, int64_t>> memory;  ///< and the peak
    std::optional<StepProfile> profile;
  } told_;             ///< for the end of the run
  RankRecords ranks_;  ///< empty where there is one
  MetricsLog metrics_;
  TensorboardWriter tensorboard_;
  RunReport report_;
  LossWatchdog loss_watchdog_;
  IdleMonitors idle_monitors_;
  MemoryMonitor memory_monitor_;
  std::optional<std::string> stop_reason_;
  bool evaluated_ = false, saved_ = false;  // in this process
  bool complete_ = false;                   ///< by RecordEnd
  std::unique_ptr<Progress> progress_;

  RunTotals totals_;
  double seen_cpu_s_ = 0;  ///< processor time at the step record before
  std::chrono::steady_clock::time_point seen_at_;
};

}  // namespace trainwright
