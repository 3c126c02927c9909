/// What one process's work on a run adds up to. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/checkpoint/checkpoint_writer.h"
#include "lib/dist/rank_waits.h"
#include "lib/train/trainer.h"

namespace trainwright {

class RunTotals {
 public:
  /// \param first_step, first_tokens of the run when the process began
  RunTotals(int64_t first_step, int64_t first_tokens)
      : first_step_(first_step), first_tokens_(first_tokens), step_(first_step), tokens_seen_(first_tokens) {}

  /// \param model_flops of the step
  void AddStep(const StepReport& report, double model_flops);
  void AddEvaluation(double loss_nats);
  void AddSave(const SaveTimes& times);
  void AddCopy() { ++copies_; }

  /// Of the run so far.
  int64_t step() const { return step_; }
  int64_t tokens_seen() const { return tokens_seen_; }
  /// Of this process.
  int64_t steps_here() const { return step_ - first_step_; }
  int64_t tokens_here() const { return tokens_seen_ - first_tokens_; }
  double training_s() const { return training_s_; }  ///< in its steps
  int64_t copies() const { return copies_; }
  double save_stall_s() const { return save_stall_s_; }
  double save_wait_s() const { return save_wait_s_; }
  double writer_cpu_s() const { return writer_cpu_s_; }
  /// Tokens of each source; empty: one source.
  const std::vector<int64_t>& source_tokens() const { return source_tokens_; }
  /// Of all ranks in its steps; empty: one rank.
  const RankWaits& rank_waits() const { return rank_waits_; }
  /// Means over its steps; 0 before the first.
  double tokens_per_s() const { return PerSecond(static_cast<double>(tokens_here())); }
  double steps_per_s() const { return PerSecond(static_cast<double>(steps_here())); }
  double model_flops_per_s() const { return PerSecond(model_flops_); }
  /// Losses of training and of evaluations; absent before the first.
  struct Losses {
    std::optional<double> first, last, best;
  };
  const Losses& loss_nats() const { return loss_nats_; }
  const Losses& eval_nats() const { return eval_nats_; }

 private:
  double PerSecond(double amount) const { return training_s_ > 0 ? amount / training_s_ : 0; }

  int64_t first_step_, first_tokens_, step_, tokens_seen_;
  double training_s_ = 0, model_flops_ = 0;
  std::vector<int64_t> source_tokens_;
  RankWaits rank_waits_;
  int64_t copies_ = 0;
  double save_stall_s_ = 0, save_wait_s_ = 0, writer_cpu_s_ = 0;
  Losses loss_nats_, eval_nats_;
};

}  // namespace trainwright
