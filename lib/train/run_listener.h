/// What happens in a training run, reported to whoever listens: the writer's rank records it (RunRecorder),
/// the others are silent (SilentListener).
///
/// Nothing here decides what is computed. Not thread-safe: the training thread's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/checkpoint/checkpoint_writer.h"
#include "lib/device/offload_stack.h"
#include "lib/objective/evaluation.h"
#include "lib/profile/step_profile.h"
#include "lib/run/rank_records.h"
#include "lib/run/run_report.h"
#include "lib/run/train_plan.h"
#include "lib/spec/memory_parts.h"
#include "lib/train/graph_counts.h"
#include "lib/train/trainer.h"

namespace trainwright {

class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Called once for every step, in order.
  /// \param epochs passes over the data so far
  /// \param saving whether a checkpoint was being written meanwhile
  virtual void RecordStep(const StepReport& report, double epochs, bool saving) = 0;
  virtual void RecordEvaluation(const Evaluation& evaluation, double eval_time_s) = 0;
  /// Called when a save has ended, perhaps some steps later.
  virtual void RecordCheckpoint(const FinishedSave& save) = 0;
  virtual void RecordCopy(const CopyResult& result) = 0;
  /// What the steps took that --profile timed.
  /// \param trace_problem why there is no trace; empty: there is
  virtual void RecordProfile(const StepProfile& /*profile*/, const std::string& /*trace_problem*/) {}
  /// A message to the user.
  virtual void Warn(const std::string& message) = 0;
  /// A warning that the user has seen.
  virtual void RecordWarning(const std::string& message) = 0;
  /// The last happening of the process.
  /// \param reason "complete", "time limit", "signal", or an error's text
  virtual void RecordEnd(int exit_status, const std::string& reason) = 0;
  /// Another split of the same steps into micro-batches.
  virtual void set_plan(const TrainPlan& plan) = 0;
  /// What the end of the run reports about its memory.
  virtual void set_memory(const MemoryParts& memory, int64_t peak_bytes) = 0;
  /// What is known of the ranks of the run, where there are several.
  virtual void set_ranks(const RankRecords& ranks) = 0;
  /// What went out of the device's memory and in again in this process.
  virtual void set_offload(const OffloadCounts& counts) = 0;
  /// Likewise, what --compile repeated.
  virtual void set_graphs(const GraphCounts& counts) = 0;
  /// Why the watchdog wants the run to save and stop; absent while it does not.
  virtual std::optional<std::string> stop_reason() const { return std::nullopt; }
  /// The watchdog's part of a checkpoint; or null.
  virtual nlohmann::json watchdog_state() const { return nullptr; }
  /// The report of the records so far, to be drawn and written while training goes on.
  virtual RunReport report() const { return {}; }
};

/// Hears nothing: of the ranks that write no files.
class SilentListener final : public RunListener {
 public:
  void RecordStep(const StepReport&, double, bool) override {}
  void RecordEvaluation(const Evaluation&, double) override {}
  void RecordCheckpoint(const FinishedSave&) override {}
  void RecordCopy(const CopyResult&) override {}
  void Warn(const std::string&) override {}
  void RecordWarning(const std::string&) override {}
  void RecordEnd(int, const std::string&) override {}
  void set_plan(const TrainPlan&) override {}
  void set_memory(const MemoryParts&, int64_t) override {}
  void set_ranks(const RankRecords&) override {}
  void set_offload(const OffloadCounts&) override {}
  void set_graphs(const GraphCounts&) override {}
};

}  // namespace trainwright
