/// What a run learns: which records it takes, how a step's samples become micro-batches, which passes make
/// the gradients, what the loss consists of, and how progress is measured on held-out data.
///
/// A trainer asks an objective for all of this and knows no loss of its own. Every term of the loss has a
/// denominator of its own, counted over the whole optimizer step as an integer before the first pass, so that
/// a step's gradients do not depend on how it is split into micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/packed_batch.h"
#include "lib/loading/sample_loaders.h"
#include "lib/loading/sample_stream.h"
#include "lib/model/language_model.h"
#include "lib/nn/loss/cross_entropy.h"
#include "lib/objective/evaluation.h"
#include "lib/optim/loss_sums.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/own_options.h"

namespace trainwright {

/// What a plan says of its objective.
struct ObjectiveOptions {
  std::string name = kDefaultObjective;  ///< in the registry
  LossOn loss_on = LossOn::kAssistant;
  double z_loss = 0, label_smoothing = 0;
  OwnOptions own = {};  ///< options that only this objective has
};

/// One of the parts that the loss is the sum of.
struct LossTerm {
  std::string name;      ///< with its unit: "z_loss_nats"
  bool recorded = true;  ///< whether records of steps tell it
  /// Whether it is one of the record's loss_terms, a curve of the report and loss/NAME in TensorBoard; else
  /// it is a field of the record by its name.
  bool curve = true;
};

/// A step's samples, or a rank's share of them, and what is counted of them before the first pass.
struct StepBatches {
  std::vector<PackedBatch> micro_batches;
  /// Of each micro-batch, where its samples begin: what dropout depends on. Empty: each is one sample.
  std::vector<std::vector<DropoutPosition::Sample>> places;
  /// Of each term: Cut counts them of the samples it has; the passes want those of the whole step.
  std::vector<int64_t> denominators;

  /// Whether there is anything to learn from the step.
  bool empty() const;
};

/// What the passes of a step work with. All of it outlives them.
struct StepPass {
  LanguageModel* model = nullptr;
  const StepBatches* batches = nullptr;
  double loss_scale = 1;            ///< the gradients are multiplied by it, times what a device holds:
  at::Tensor loss_scale_on_device;  ///< fp64 [1], or undefined: 1
  uint64_t seed = 0;                ///< of what is drawn
  int64_t step = 1;                 ///< its number, from 1
  bool pin = true;                  ///< see Upload
  /// Called before the backward pass that completes the gradients of these batches: no pass follows that adds
  /// to them. They are then exchanged between ranks while that pass runs. May be empty.
  std::function<void()> last_backward = {};

  /// What gradients of sums are to be multiplied by to become those of a mean.
  GradientScale ScaleOf(int64_t denominator) const;
  /// A micro-batch, with what its dropout depends on: asked for twice it drops the same.
  ModelInput InputOf(size_t micro_batch) const;
  void TellLastBackward() const {
    if (last_backward) last_backward();
  }
};

/// Immutable.
class Objective {
 public:
  virtual ~Objective() = default;
  /// In the order of all that is counted and summed by term. The same for the life of the objective.
  virtual const std::vector<LossTerm>& terms() const = 0;
  /// The names of the loaders that its steps are drawn from, each at a pace of its own: kMainLoader alone,
  /// unless overridden. It is always one of them, and the one whose epochs a run is measured in.
  virtual std::vector<std::string> Loaders() const { return {kMainLoader}; }
  /// The options of a loader's stream of samples.
  /// \param loader one of Loaders
  /// \param options what the plan says of all of them. Where --data names several sets they are its `sets`:
  ///     a loader may read some of them
  virtual SampleStreamOptions Cutting(const std::string& /*loader*/,
                                      const SampleStreamOptions& options) const {
    return options;
  }
  /// How a loader's records become samples: as LmCutter does, unless overridden.
  /// \param records of the set
  /// \param options of Cutting
  /// \throws Error{kBadInput} on records that it does not know
  virtual std::unique_ptr<const SampleCutter> MakeCutter(const std::string& loader, RecordKind records,
                                                         const SampleStreamOptions& options) const;
  /// All of Loaders.
  /// \param set outlives them
  /// \param options what the plan says
  /// \param loader of each, but for the bytes of the cache, which they share
  /// \throws as SampleLoader and MakeCutter
  OpenedLoaders OpenLoaders(const ShardSet* set, const SampleStreamOptions& options,
                            const LoaderOptions& loader) const;
  /// The samples of the next step, in its order.
  /// \param loaders those of Loaders
  /// \param samples of the step, of all ranks together: each draws the whole step
  /// \throws as SampleLoader::NextStep; the loaders then stand where they did before
  std::vector<Sample> NextStep(const SampleLoaders& loaders, int64_t samples, bool drop_last) const;
  /// The micro-batch of some samples: them all, laid end to end, unless overridden. A sample's tokens lie
  /// together and in its order, or the whole micro-batch counts as one sample for dropout.
  virtual PackedBatch Pack(std::span<const Sample> samples) const;
  /// The denominators' share of a micro-batch, one a term.
  virtual std::vector<int64_t> Count(const PackedBatch& micro_batch) const = 0;
  /// The passes of a step: adds the gradients of all terms to the model's, each divided by its denominator,
  /// and the terms' sums to `sums`. One that says when the last backward pass begins
  /// (StepPass::last_backward) has its gradients exchanged during it, otherwise afterwards.
  /// \throws Error{kBadInput} on an id outside the vocabulary
  virtual void Run(const StepPass& pass, LossSums* sums) const = 0;
  /// The run's loss, by which it is watched and compared: the sum of the terms' means, unless overridden.
  /// \param means one a term
  virtual double Loss(const std::vector<double>& means) const;
  /// \throws Error{kBadInput} when there is nothing to evaluate on; Error{kNonFinite}; Error{kInterrupted,
  ///     kTerminated} after a stop signal
  virtual Evaluation Evaluate(LanguageModel* model, const ShardSet& set,
                              const EvaluationOptions& options) const = 0;

  /// Samples in micro-batches of `batch` of them.
  /// \param first number of the first of them in the step: dropout depends on it
  StepBatches Cut(std::span<const Sample> samples, int64_t batch, int64_t first = 0) const;

 private:
  /// Reads the `samples` of the next step: from kMainLoader, unless overridden. Which loader gives how many
  /// depends on nothing but the parameters, so that all ranks and a resumed run draw the same.
  /// \param drop_last see SampleLoader::NextStep
  /// \throws as SampleLoader::NextStep, wherever the loaders then stand
  virtual std::vector<Sample> Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const;
};

}  // namespace trainwright
