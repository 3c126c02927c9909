/// One training run's arithmetic: samples in, optimizer steps out. No files, no clock-dependent decisions.
///
/// A step takes the next batch * accum samples for each rank as the objective draws them, has it count them
/// first and minimises the mean of its loss over all of them, so k micro-batches of n samples are one
/// micro-batch of k * n, and so are the shares of k ranks. Gradients and sums of losses are added up over all
/// ranks, which then decide and update alike, each for itself: weights and states are the same on all of them
/// bit for bit. Of sharded parameters (FlatParameters::Shard) each rank updates its part and sends it to the
/// others. Under TrainPlan::exact_world weights are the same on any number of ranks. The state is small and
/// explicit: restoring it into a fresh Trainer continues bit for bit on the same threads, instruction set and
/// torch build. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/rank_waits.h"
#include "lib/dist/world.h"
#include "lib/loading/loader_state.h"
#include "lib/loading/sample_loaders.h"
#include "lib/model/language_model.h"
#include "lib/objective/objective.h"
#include "lib/optim/clip.h"
#include "lib/optim/device_step.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/step_guard.h"
#include "lib/run/train_plan.h"
#include "lib/spec/model_flops.h"
#include "lib/train/outlier_records.h"
#include "lib/train/step_passes.h"

namespace trainwright {

/// Everything besides the weights that the next step depends on.
struct TrainerState {
  int64_t step = 0;     ///< optimizer steps taken, skipped ones included
  int64_t updates = 0;  ///< of the weights
  int64_t tokens_seen = 0;
  int64_t labels_seen = 0;
  LoaderStates loaders = {{kMainLoader, {}}};  ///< where they read next
  LossScaler::State scaler;
  StepOutliers outliers = {};
  std::vector<OptimizerState> optimizer = {};  ///< see Optimizer::States
  std::string origin = "training state";       ///< the file it was read from, for messages

  LoaderState& data() { return loaders.at(kMainLoader); }
  const LoaderState& data() const { return loaders.at(kMainLoader); }
  /// An optimizer's state by its name, which must be there.
  at::Tensor& optimizer_state(const std::string& name);
};

/// A term of the loss in a step.
struct LossTermMean {
  std::string name;
  double mean = 0;  ///< over its denominator; 0 where that is 0, NaN in a step without a label
};

/// What a step takes of its process.
struct HostTime {
  double step_s = 0;                ///< that the call took; all of a run's steps add up to their time
  std::optional<double> cleanup_s;  ///< after it, of emptying a GPU's cache; nullopt: it was not
};

struct StepReport {
  int64_t step = 0;                 ///< steps taken, this one included: the first is 1
  double loss_nats = 0;             ///< the objective's Loss before the update; NaN without a label
  std::vector<LossTermMean> terms;  ///< in the objective's order
  double lr = 0;
  double grad_norm = 0;   ///< before clipping
  double loss_scale = 1;  ///< the step ran with
  bool skipped = false;   ///< fp16 overflow, no label, or an outlier: the weights did not change
  OutlierReport outlier;  ///< of this step
  int64_t tokens = 0, labels = 0;
  int64_t attention_pairs = 0;         ///< as of TokenCounts
  int64_t tokens_if_padded = 0;        ///< as of StepWork
  TextCounts texts;                    ///< likewise
  std::vector<int64_t> source_tokens;  ///< of each set of a mixture; empty: one set
  /// Whether loss, norm, scale, `skipped` and `outlier` are this step's; else they are those of the last
  /// step that was read.
  bool read = true;
  HostTime host;
  /// The time of a step: the call's on a CPU, on a GPU the mean since the numbers were read before.
  double step_time_s = 0;
  double data_wait_s = 0;      ///< the part of step_time_s spent waiting for samples
  double exchange_wait_s = 0;  ///< likewise, for other ranks
  RankWaits rank_waits;        ///< of all ranks for others, since they last reported it: a step's

  /// A term's mean; it must be one of the objective's.
  double term(const std::string& name) const;
  /// A query counts as a label, but no head predicts a token of it.
  TokenCounts counts() const {
    return {.tokens = tokens, .labels = labels - texts.queries, .attention_pairs = attention_pairs};
  }
};

/// What a trainer works with. Model, loaders and world outlive it; the loaders are read from where they
/// are.
struct TrainerParts {
  LanguageModel* model = nullptr;
  SampleLoaders loaders;  ///< that the objective draws from
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Optimizer> optimizer;  ///< of the model's parameters
  World* world = Solo();
  int64_t bucket_bytes = GradientExchangeOptions().bucket_bytes;  ///< of gradients between ranks
};

class Trainer {
 public:
  /// \param plan of as many ranks as the world has
  /// \param defer whether the numbers of a step stay on the device until they are read; on a GPU they always
  /// do
  Trainer(TrainerParts parts, const TrainPlan& plan, at::Device device, bool defer = false);
  /// Whether micro-batches go to a GPU through pinned memory: see Upload. Changes no result.
  void set_pin(bool pin) { pin_ = pin; }
  /// Of one whose numbers stay on the device: as DeviceStep::set_graph.
  void RepeatUpdates(UpdateGraph graph) { device_step_->set_graph(std::move(graph)); }
  /// What was repeated so far; null without RepeatUpdates.
  const UpdateGraphCounts* update_graph_counts() const {
    return device_step_ ? device_step_->graph_counts() : nullptr;
  }

  /// A step that fails on one rank before its update fails on all of them, see ShareEnd: the next Step takes
  /// its samples again. So does one for which ranks have read other data.
  /// \throws as RequireSamePlaces; Error{kNonFinite} naming the step when loss or gradients are not finite
  ///     (fp16: at loss scale 1); the weights are then those of the step before. Without `read` on a GPU: at
  ///     the next look, with the same weights and the step that was the first
  /// \param read whether the report must hold this step's numbers, on all ranks or on none; on a GPU that
  ///     waits for the step to end
  StepReport Step(bool read = true);
  /// After a Step that threw for lack of memory: gives back what the model's passes hold and makes
  /// micro-batches at most half as large, and as many more of them; the next Step takes the samples of that
  /// step again. The weights are those before it. Gradients that were released still are, after each
  /// micro-batch: the plan says so.
  /// \returns false, and does nothing, where the update had begun, a micro-batch is one sample, its limit of
  ///     tokens is that of a sample, or leaves are to stay what they are
  bool HalveMicroBatches();
  bool done() const { return step_ >= plan_.schedule.total_steps; }
  int64_t step() const { return step_; }
  int64_t tokens_seen() const { return tokens_seen_; }
  const TrainPlan& plan() const { return plan_; }
  /// Of the step under way, or that failed; empty between steps.
  const std::vector<Sample>& samples() const { return samples_; }
  const Objective& objective() const { return *objective_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// What exchanging with other ranks holds, and sums of leaves.
  int64_t exchange_bytes() const { return passes_.held_bytes(); }
  /// The tensors are the live ones, on the trainer's device: use them before the next Step. Of a sharded
  /// state (Optimizer::is_sharded) they are this rank's shard; Restore takes the whole. Waits for a GPU.
  /// \throws Error{kNonFinite} as Step
  TrainerState state();
  /// Takes over what a GPU decided since the last look, on all ranks at once; elsewhere there is nothing to.
  /// \throws Error{kNonFinite} as Step, where any rank's numbers are not finite
  void Look();
  /// How often the host has read numbers from the device.
  int64_t device_reads() const { return reader_.reads(); }
  /// Takes over a state; the weights are the caller's to restore, before or after.
  /// \throws Error{kBadInput} when the optimizer's states are not those of this one on this model, or the
  ///     loaders' are not those of this run's data
  void Restore(const TrainerState& state);
  LanguageModel& model() { return *model_; }

 private:
  /// This rank's samples of the next step, counted in the report.
  StepBatches TakeBatches(StepReport* report);
  /// Makes what this rank counted that of the whole step.
  /// \param taken whether this rank has its samples
  /// \returns whether all ranks have theirs
  bool AddUpCounts(bool taken, StepBatches* batches, StepReport* report);
  /// Where all ranks have done what may fail before the update: see ShareEnd. They say where their loaders
  /// are and how long they have waited, too.
  /// \returns whether `finite` holds on all of them
  /// \throws as ShareEnd and RequireSamePlaces
  bool EndPasses(const std::exception_ptr& failure, bool finite, StepReport* report);
  /// What this rank has waited for others in its steps.
  double wait_s() const { return waits_.counts_s + passes_.wait_s(); }
  /// Makes the gradients and sums of the whole step.
  PassesEnd RunPasses(const StepBatches& batches, StepReport* report);
  void SetLosses(const std::vector<double>& sums, const std::vector<double>& denominators,
                 StepReport* report) const;
  /// What the host sees of a step's losses and gradients.
  struct Verdict {
    double worst_loss_nats = 0;           ///< see WorstMean
    std::optional<double> run_loss_nats;  ///< nothing where the step lacks a term of it
    ClipResult clipped;
    bool finite = true;  ///< both
  };
  Verdict Judge(const StepBatches& batches, const PassesEnd& passes, StepReport* report);
  /// The end of a step that was judged on the host.
  /// \param finite on all ranks
  /// \throws Error{kNonFinite}
  void Update(const Verdict& verdict, bool finite, StepReport* report);
  void UpdateOnDevice(const StepBatches& batches, const PassesEnd& passes, bool read, StepReport* report);
  void EndStep(std::chrono::steady_clock::time_point start, StepReport* report);
  /// \param loss_nats, grad_norm of this rank; both finite: it was another's that is not
  /// \throws Error{kNonFinite}
  [[noreturn]] void RefuseNonFinite(int64_t step, double loss_nats, double grad_norm) const;
  /// Takes over what the device decided since the last look.
  StepState ReadDevice();

  LanguageModel* model_;
  SampleLoaders loaders_;
  TrainPlan plan_;
  at::Device device_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Optimizer> optimizer_;
  StepGuard guard_;
  std::optional<DeviceStep> device_step_;  ///< where numbers stay on the device
  HostReader reader_;
  std::vector<Sample> samples_;  ///< of the step under way
  StepReport last_read_;         ///< the numbers of the last look
  double unread_time_s_ = 0;     ///< of the steps since then
  int64_t unread_steps_ = 0;
  int64_t step_ = 0, tokens_seen_ = 0, labels_seen_ = 0;
  bool pin_ = true;
  World* world_;
  StepPasses passes_;
  struct {
    double counts_s = 0;  ///< for their counts of a step
    double told_s = 0;    ///< of wait_s(), what the others know of
  } waits_;
};

}  // namespace trainwright
