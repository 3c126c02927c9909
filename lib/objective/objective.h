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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/dist/world.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/micro_batch_rule.h"
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

/// What a plan says about its objective.
struct ObjectiveOptions {
  std::string name = kDefaultObjective;  ///< in the registry
  LossOn loss_on = LossOn::kAssistant;
  double z_loss = 0, label_smoothing = 0;
  OwnOptions own = {};  ///< options that only this objective has
  uint64_t seed = 0;    ///< of the run: what the objective draws is keyed by it
};

/// One of the parts that the loss is the sum of.
struct LossTerm {
  std::string name;      ///< with its unit: "z_loss_nats"
  bool recorded = true;  ///< whether records of steps report it
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
  /// Of how many micro-batches of this rank's step these are some; 0: they are all of it.
  size_t of_step = 0;

  /// Whether there is anything to learn from the step.
  bool empty() const;
};

/// Texts of a step whose notes say what they are for: see SpanNote.
struct TextCounts {
  int64_t queries = 0, passages = 0;
  int64_t generative_rows = 0;

  TextCounts& operator+=(const TextCounts& other);
  bool operator==(const TextCounts&) const = default;
};

/// What a step holds, and what its passes compute.
struct StepWork {
  int64_t tokens = 0, labels = 0;
  int64_t attention_pairs = 0;   ///< as of TokenCounts
  int64_t tokens_if_padded = 0;  ///< if texts were padded to one length; 0: not reported
  TextCounts texts = {};

  StepWork& operator+=(const StepWork& other);
  bool operator==(const StepWork&) const = default;
};

/// How many samples a step has, and how they are divided.
struct StepShape {
  int64_t samples_of_rank = 1;
  int64_t samples_of_step = 1;  ///< of all ranks
  int64_t ranks = 1;
  int64_t micro_batch = 1;  ///< samples of one
};

/// What the passes of a step have in common, made once a step. One step's, one rank's.
class StepContext {
 public:
  StepContext() = default;
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;
  virtual ~StepContext() = default;
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
  /// What Begin made of this rank's whole step; null: nothing, or Begin was not called (a dry run).
  StepContext* context = nullptr;
  /// Number, in this rank's step, of the first of these micro-batches.
  size_t first_micro_batch = 0;
  /// In how many equal leaves, one after the other, this rank's micro-batches are run: for Begin.
  int64_t leaves = 1;

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
  /// \param sets that --data names, one too
  virtual std::vector<std::string> Loaders(std::span<const OrderedSet> /*sets*/) const {
    return {kMainLoader};
  }
  /// The options of a loader's stream of samples.
  /// \param loader one of Loaders
  /// \param options what the plan says about all of them. Where --data names several sets they are its
  ///     `sets`: a loader may read some of them
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
  /// All of Loaders. Overridden only where a loader depends on what others read.
  /// \param set outlives them
  /// \param options what the plan says; no `sets`: the data is one
  /// \param loader of each, but for the bytes of the cache, which they share
  /// \throws as SampleLoader, Loaders and MakeCutter
  virtual OpenedLoaders OpenLoaders(const ShardSet* set, const SampleStreamOptions& options,
                                    const LoaderOptions& loader) const;
  /// The samples of the next step, in its order.
  /// \param loaders those of Loaders
  /// \param samples of the step, of all ranks together: each draws the whole step
  /// \throws as SampleLoader::NextStep; the loaders then are where they were before
  std::vector<Sample> NextStep(const SampleLoaders& loaders, int64_t samples, bool drop_last) const;
  /// The micro-batch of some samples: them all, laid end to end, unless overridden. A sample's tokens lie
  /// together and in its order, or the whole micro-batch counts as one sample for dropout.
  virtual PackedBatch Pack(std::span<const Sample> samples) const;
  /// Samples that loaders gave each by itself, as steps have them: for who measures passes without a step.
  /// \param samples the longest first, and so are those that come back
  virtual std::vector<Sample> Join(std::vector<Sample> samples) const { return samples; }
  /// The denominators' share of a micro-batch, one a term.
  virtual std::vector<int64_t> Count(const PackedBatch& micro_batch) const = 0;
  /// What a micro-batch holds and costs: by default that of spans whose tokens attend backwards alone, and
  /// nothing of padding.
  virtual StepWork WorkOf(const PackedBatch& micro_batch, const ModelConfig& model) const;
  /// A micro-batch of samples as long as they can be, for estimates of runs without their data: one span a
  /// sample with a label for every token, unless overridden. All tokens have the id 0.
  /// \param span_tokens of a span, at most
  virtual PackedBatch LongestBatch(int64_t samples, int64_t span_tokens) const;
  /// What of a micro-batch goes forward through the model once more than every pass does, of all but one
  /// micro-batch of a step.
  virtual StepWork ForwardAgain(const PackedBatch& /*micro_batch*/, const ModelConfig& /*model*/) const {
    return {};
  }
  /// Bytes of what a rank gives to all others in a step, gradients and weights apart, one a gather.
  virtual std::vector<int64_t> GatheredBytes(const StepShape& /*shape*/, const ModelConfig& /*model*/) const {
    return {};
  }
  /// Bytes of what a step keeps where the model is, beside what the passes of a micro-batch take.
  virtual int64_t HeldBytes(const StepShape& /*shape*/, const ModelConfig& /*model*/) const { return 0; }
  /// Called once a step, before Run, with all micro-batches of this rank, on all ranks together. What fails
  /// on one rank is shared (ShareEnd) before ranks exchange anything: it throws on all ranks or on none.
  /// \param pass outlives what is made of it
  /// \returns what Run is given as StepPass::context; null, as here: nothing
  virtual std::unique_ptr<StepContext> Begin(const StepPass& /*pass*/, World* /*world*/) const {
    return nullptr;
  }
  /// The passes of a step, or of some of its micro-batches: adds the gradients of all terms to the model's,
  /// each divided by its denominator, and the terms' sums to `sums`. One that says when the last backward
  /// pass begins (StepPass::last_backward) has its gradients exchanged during it, otherwise afterwards.
  /// \throws Error{kBadInput} on an id outside the vocabulary
  virtual void Run(const StepPass& pass, LossSums* sums) const = 0;
  /// Whether Run takes all its passes by LanguageModel::LossAndGradients, of labels without weights.
  virtual bool takes_label_passes() const { return false; }
  /// The run's loss, by which it is watched and compared: the sum of the terms' means, or what is
  /// overridden, a linear function of them.
  /// \param means one a term
  virtual double Loss(const std::vector<double>& means) const;
  /// \throws Error{kBadInput} when there is nothing to evaluate on; Error{kNonFinite}; Error{kInterrupted,
  ///     kTerminated} after a stop signal
  virtual Evaluation Evaluate(LanguageModel* model, const ShardSet& set,
                              const EvaluationOptions& options) const = 0;

  /// How the model makes vectors of texts, as its folder says it; nothing, as here: it is not trained to.
  /// \param set the run's data, which says how its texts are written
  /// \throws Error{kBadInput} on data that does not say it
  virtual std::optional<EmbeddingSpec> EmbeddingOf(const ShardSet& /*set*/) const { return std::nullopt; }

  /// Samples in micro-batches.
  /// \param first number of the first of them in the step: dropout depends on it
  /// \throws as DivideSamples
  StepBatches Cut(std::span<const Sample> samples, const MicroBatchRule& rule, int64_t first = 0) const;

 private:
  /// Reads the `samples` of the next step: from kMainLoader, unless overridden. Which loader gives how many
  /// depends on nothing but the parameters, so that all ranks and a resumed run draw the same.
  /// \param drop_last see SampleLoader::NextStep
  /// \throws as SampleLoader::NextStep, wherever the loaders then are
  virtual std::vector<Sample> Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const;
};

}  // namespace trainwright
