/// A decoder-only language model: a Body and its head, the matrix of the logits, with the loss of its labels.
/// Not thread-safe; one per training thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/model/body.h"
#include "lib/model/labelled_input.h"
#include "lib/model/pass_graphs.h"
#include "lib/nn/loss/linear_cross_entropy.h"
#include "lib/nn/precision.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/offload_choice.h"

namespace trainwright {

/// Program text by the name of its file: what is written beside the weights of a model that other programs
/// cannot compute by themselves. The texts last as long as the program.
using ModelCode = std::map<std::string, std::string_view>;

class LanguageModel;

/// Continues sequences: a BodyDecoder and the head. Not thread-safe.
class Decoder {
 public:
  /// \param model outlives it
  Decoder(LanguageModel* model, std::unique_ptr<BodyDecoder> body) : model_(model), body_(std::move(body)) {}
  /// As BodyDecoder::AppendToEach.
  /// \returns fp32 logits [sequences of `next`, V] of the position after the last of each
  /// \throws Error{kBadInput} on an id that is not in the vocabulary
  at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t rows = 0);
  /// To the first sequence.
  /// \returns fp32 logits [V]
  at::Tensor Append(const std::vector<int64_t>& tokens) { return AppendToEach({{0, tokens}})[0]; }
  /// Of the position after the last of a sequence that has tokens, of a body that carries a state.
  /// \returns fp32 logits [V]
  /// \throws Error{kUsage} of other bodies
  at::Tensor LogitsBehind(int64_t sequence) const;
  /// As BodyDecoder::Fork.
  void Fork(int64_t from, int64_t to, int64_t length) { body_->Fork(from, to, length); }
  int64_t length(int64_t sequence = 0) const { return body_->length(sequence); }
  /// What contexts and states are kept by: Prefill, Export, Import, ExportState and ImportState.
  BodyDecoder& body() { return *body_; }

 private:
  LanguageModel* model_;
  std::unique_ptr<BodyDecoder> body_;
};

/// What a model holds besides its parameters, grown to the largest micro-batch so far.
struct ModelMemory {
  int64_t activation_bytes = 0;
  int64_t logits_bytes = 0;  ///< slices of logits and what is gathered for them
};

class LanguageModel {
 public:
  /// \param body may be shared with others that compute from its hidden states
  explicit LanguageModel(std::shared_ptr<Body> body, ModelCode code = {});
  virtual ~LanguageModel() = default;
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  Body& body() { return *body_; }
  const std::shared_ptr<Body>& shared_body() const { return body_; }
  const ModelConfig& config() const { return body_->config(); }
  const ModelCode& code() const { return code_; }
  FlatParameters& parameters() { return body_->parameters(); }
  const FlatParameters& parameters() const { return std::as_const(*body_).parameters(); }
  /// Sum of the loss over the micro-batch, forward only, without dropout.
  /// \throws Error{kBadInput} on an id that is not in the vocabulary, as all that follow do
  LossSum Loss(const ModelInput& input);
  /// Forward and backward: adds `scale` * d(sum of losses, with the terms of set_loss_terms)/dw to
  /// the gradients.
  /// On a GPU nothing waits: the losses stay there.
  /// \param scale 1 / (labels of the whole optimizer step), times the loss scale under fp16
  virtual LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale);
  /// fp32 logits [N, V] of every position, without dropout.
  at::Tensor Logits(const BodyInput& input);
  /// The same of hidden states.
  /// \param hidden_nd storage type [N, D]
  at::Tensor LogitsOf(const at::Tensor& hidden_nd) const;
  std::unique_ptr<Decoder> NewDecoder(int64_t max_tokens, int64_t sequences = 1);
  ModelMemory memory() const;
  /// Gives back what memory() counts; the next pass takes what it needs.
  void ReleaseActivations();
  /// What LossAndGradients adds to the cross-entropy; nothing at first. Loss is the cross-entropy alone.
  void set_loss_terms(const LossTerms& terms);
  /// Makes LossAndGradients repeat its passes as graphs; of a model that offloads nothing and whose gradients
  /// are whole. After all that chooses how passes run.
  void set_graphs(std::unique_ptr<GraphRecorder> recorder, const PassGraphsOptions& options);
  /// What was repeated so far; null without set_graphs.
  const PassGraphCounts* graph_counts() const { return graphs_ == nullptr ? nullptr : &graphs_->counts(); }
  /// Of how many tokens Loss and LossAndGradients take a micro-batch at once (truncated backpropagation
  /// through time): its rows are cut into pieces of this many, whatever its spans. The state of a span that a
  /// cut divides is carried on, so that losses are those of the whole within rounding; its gradient is not.
  /// Memory is that of a piece. 0, as at first: all at once.
  /// \throws Error{kUsage} on a model whose body carries no state
  void set_tbptt(int64_t tokens);
  /// As Body::set_activation_checkpointing.
  void set_activation_checkpointing(ActivationCheckpointing kind) {
    body_->set_activation_checkpointing(kind);
  }
  /// As Body::set_offload.
  /// \param stack outlives the model's passes
  void set_offload(OffloadStack* stack);
  /// As the choice says; `folder` is that of a CPU's files. Changes what OffloadChoice says. Before the first
  /// pass.
  /// \throws Error{kIo}
  void Offload(const OffloadChoice& choice, const std::string& folder);
  /// Likewise of a model on torch's meta device, which stands for one on `device`.
  void OffloadOnPaper(const OffloadChoice& choice, at::Device device);
  /// What went out and in so far.
  OffloadCounts offload_counts() const;
  /// Of the host's memory that what is offloaded takes; on a CPU, where it goes to files, 0.
  int64_t offloaded_bytes() const;

 private:
  /// Of what the body takes at once.
  LossSum LossAndGradientsOf(const ModelInput& piece, const HeadLabels& labels, const GradientScale& scale);
  /// Undefined where it is frozen.
  GradientTarget HeadGradient();
  /// Of a quantised head a scratch matrix, good until the next is read.
  at::Tensor HeadMatrix() const;

  std::shared_ptr<Body> body_;
  ModelCode code_;
  LinearCrossEntropy loss_;
  LossTerms loss_terms_;
  int64_t tbptt_ = 0;
  OffloadStack* offload_ = nullptr;
  std::unique_ptr<OffloadStack> own_offload_;
  std::unique_ptr<PassGraphs> graphs_;
};

}  // namespace trainwright
