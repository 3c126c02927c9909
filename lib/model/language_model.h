/// A decoder-only language model with explicit forward and backward passes over a flat parameter buffer.
///
/// No autograd graph is built: each module saves what its backward needs and adds weight gradients straight
/// into the flat gradient buffer (fp32), so k micro-batches accumulate as one k-times batch and nothing is
/// left between steps. Shape legend for lib/nn and lib/model: N tokens of a packed micro-batch, D hidden
/// size, H query heads, G key/value heads, K head size, F feed-forward size, V vocabulary, S spans. Not
/// thread-safe; one per training thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/offload_stack.h"
#include "lib/nn/linear/lora.h"
#include "lib/nn/loss/linear_cross_entropy.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/nn/precision.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/model_config.h"
#include "lib/spec/offload_choice.h"

namespace trainwright {

/// A micro-batch on the host, whatever the model's device; see lib/loading/packed_batch.h for the meaning (this
/// side stays free of lib/loading). The model checks it and copies what its layers need.
struct ModelInput {
  at::Tensor tokens_n;               ///< int64 [N]
  at::Tensor positions_n;            ///< int64 [N]
  at::Tensor labels_n;               ///< int64 [N], -100 where there is none
  std::vector<int32_t> span_starts;  ///< [S+1]
  bool pin = true;                   ///< how it goes to a GPU: see Upload
  /// Of a training pass; LossAndGradients alone drops anything, and only adapters have dropout.
  std::optional<DropoutPosition> dropout = {};
};

/// Tokens that one sequence of a Decoder goes on with.
struct Continuation {
  int64_t sequence = 0;
  std::vector<int64_t> tokens;
};

/// Continues sequences, keeping the keys and values of what each has seen. They are empty at first.
/// Holds memory for `max_tokens` positions of each; the model outlives it. Not thread-safe.
/// Where rotary frequencies depend on the length (RopeParameters::LengthClass), a call that changes those of
/// a sequence computes all of it again.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Appends tokens to each of several sequences: prompts at once, then a token at a time; none twice in a
  /// call, none longer than `max_tokens`. No rows are padded. On a CPU the bits of a sequence depend on the
  /// others only where prompts are appended together, or more than kMostThinRows tokens in all.
  /// \param rows that are computed at least, those in excess being nothing: a GPU's bits depend on their
  ///     number
  /// \returns fp32 logits [sequences of `next`, V] of the position after the last of each
  /// \throws Error{kBadInput} on an id that is not in the vocabulary
  virtual at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t rows = 0) = 0;
  /// To the first sequence.
  /// \returns fp32 logits [V]
  at::Tensor Append(const std::vector<int64_t>& tokens) { return AppendToEach({{0, tokens}})[0]; }
  /// Makes sequence `to` the first `length` tokens of `from`, which may be the same.
  virtual void Fork(int64_t from, int64_t to, int64_t length) = 0;
  virtual int64_t length(int64_t sequence = 0) const = 0;
};

/// What a model holds besides its parameters, grown to the largest micro-batch so far.
struct ModelMemory {
  int64_t activation_bytes = 0;
  int64_t logits_bytes = 0;  ///< slices of logits and what is gathered for them
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual const ModelConfig& config() const = 0;
  virtual FlatParameters& parameters() = 0;
  virtual const FlatParameters& parameters() const = 0;
  /// Sum of the loss over the micro-batch, forward only.
  /// \throws Error{kBadInput} on an id that is not in the vocabulary, as all that follow do
  virtual LossSum Loss(const ModelInput& input) = 0;
  /// Forward and backward: adds `scale` * d(sum of losses, with the terms of set_loss_terms)/dw to
  /// the gradients.
  /// On a GPU nothing waits: the losses stay there.
  /// \param scale 1 / (labels of the whole optimizer step), times the loss scale under fp16
  virtual LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) = 0;
  /// fp32 logits [N, V] of every position.
  virtual at::Tensor Logits(const ModelInput& input) = 0;
  virtual std::unique_ptr<Decoder> NewDecoder(int64_t max_tokens, int64_t sequences = 1) = 0;
  virtual ModelMemory memory() const { return {}; }
  /// Gives back what memory() counts; the next pass takes what it needs.
  virtual void ReleaseActivations() {}
  /// What LossAndGradients adds to the cross-entropy; nothing at first. Loss is the cross-entropy alone.
  void set_loss_terms(const LossTerms& terms) { loss_terms_ = terms; }
  /// What LossAndGradients keeps; all at first. Changes no result. Before the first pass: buffers do not
  /// shrink.
  void set_activation_checkpointing(ActivationCheckpointing kind) { checkpointing_ = kind; }
  /// Where LossAndGradients puts what the layers keep until the backward pass needs it; null, as at first: it
  /// stays. Changes no result. Before the first pass.
  /// \param stack outlives the model's passes
  void set_offload(OffloadStack* stack) { offload_ = stack; }
  /// As the choice says; `folder` is that of a CPU's files. Changes what OffloadChoice says. Before the first
  /// pass.
  /// \throws Error{kIo}
  void Offload(const OffloadChoice& choice, const std::string& folder);
  /// What went out and in so far.
  OffloadCounts offload_counts() const;

 protected:
  const LossTerms& loss_terms() const { return loss_terms_; }
  ActivationCheckpointing activation_checkpointing() const { return checkpointing_; }
  OffloadStack* offload() const { return offload_; }

 private:
  LossTerms loss_terms_;
  ActivationCheckpointing checkpointing_ = ActivationCheckpointing::kNo;
  OffloadStack* offload_ = nullptr;
  std::unique_ptr<OffloadStack> own_offload_;
};

}  // namespace trainwright
