/// A body made of layers one above the other, on a stream of residuals: owns the loops over the layers, what
/// they keep for the backward pass, its recomputation and offload, and the end of the backward pass below the
/// lowest parameter that is trained.
///
/// A family derives from it, registers its parameters (FlatParameters::StartSegment before each layer and
/// once after the last) and supplies a LayerPass: one layer forward, forward again and backward, and what
/// comes below the first layer and above the last.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/model/body.h"
#include "lib/model/device_input.h"
#include "lib/nn/buffer.h"
#include "lib/spec/fine_tuning.h"

namespace trainwright {

/// Under which kinds of recomputation a layer's backward pass finds what its forward pass kept: else layers
/// share its memory, and LayerPass::ForwardAgain writes it. That of the last layer always stays.
enum class Stays { kAlways, kUnlessFull, kUnlessSelectiveOrFull, kIfLeast };

/// A tensor that each layer keeps, cut to the length of the micro-batch: a row a token, or with `chunk` a row
/// for each this many tokens of a span and for what is left of it.
struct KeptTensor {
  Stays stays = Stays::kAlways;
  int64_t width = 0;
  at::ScalarType dtype = at::kFloat;
  bool tokens_last = false;  ///< [width, N] for [N, width]
  int64_t chunk = 0;         ///< C of CountScanChunks for N; 0: a row a token
  /// Where it does not stay it is not there at all, an undefined view: the family computes it in parts, or in
  /// memory of its own.
  bool in_parts = false;
  /// Made by an operator that the family calls, not written to memory of the stack's: undefined in the views
  /// of a forward pass until that has put it there, and let go after the layer's backward pass. With offload,
  /// whose lanes are memory of the stack's, as the others.
  bool of_operator = false;
};

/// What a layer keeps, in the order of the family's KeptTensors.
using LayerViews = std::vector<at::Tensor>;

/// The sum that layers add to, `stream_nd` [N, D] (its type is Numerics::residual_storage), and what the last
/// layer added, which the next one's first norm adds to it.
struct Residual {
  at::Tensor stream_nd;
  at::Tensor update_nd, update_bias;  ///< storage type [N, D], fp32 [D]; undefined where there is none
};

/// A family's work on one micro-batch, forward or backward.
class LayerPass {
 public:
  virtual ~LayerPass() = default;
  /// Writes the embeddings of the tokens to `stream_nd`.
  virtual void Embed(at::Tensor& stream_nd) = 0;
  /// \param views those of operators are undefined, and set here
  virtual void Forward(size_t layer, LayerViews& views, Residual& residual) = 0;
  /// The last norm; keeps by itself what its backward needs.
  /// \returns the normalised output, storage type [N, D]
  virtual at::Tensor Finish(const Residual& residual) = 0;

  /// The backward of Finish.
  virtual void BeginBackward(const at::Tensor& d_hidden_nd) = 0;
  /// Writes again those views that do not stay; sets those of operators among them.
  virtual void ForwardAgain(size_t layer, LayerViews& views) = 0;
  /// \param below whether anything below the layer is trained; else no gradient is wanted there
  virtual void Backward(size_t layer, LayerViews& views, bool below) = 0;
  /// The backward of Embed.
  virtual void EmbedBackward() = 0;
};

class LayerStack : public Body {
 public:
  const ModelConfig& config() const final { return config_; }
  FlatParameters& parameters() final { return parameters_; }
  const FlatParameters& parameters() const final { return parameters_; }
  size_t head() const final { return head_; }
  std::optional<size_t> projection() const final { return projection_; }
  at::Tensor Forward(const BodyInput& input, Keep keep) final;
  void Backward(const BodyInput& input, const at::Tensor& d_hidden_nd) final;
  void Check(const BodyInput& input) const final;
  bool tells_gradients_done() const final { return on_segment_done_ != nullptr; }
  int64_t activation_bytes() const override;
  int64_t pass_memory_bytes() const override;
  void ReleaseActivations() override;
  /// \throws Error{kUsage} on kLeast of layers that keep nothing more with it
  void set_activation_checkpointing(ActivationCheckpointing kind) final;
  void set_offload(OffloadStack* stack) final { offload_ = stack; }
  void set_on_segment_gradients_done(SegmentListener listener) final {
    on_segment_done_ = std::move(listener);
  }

  const Numerics& numerics() const { return numerics_; }
  at::Device device() const { return device_; }
  /// One past the largest position that the model can compute.
  virtual int64_t positions_limit() const;

 protected:
  /// \param config of sizes that are positive
  /// \param kept what each layer keeps: first its input [N, D], where the first layer's stream is embedded
  LayerStack(const ModelConfig& config, const Numerics& numerics, at::Device device,
             std::vector<KeptTensor> kept, const FineTuning& tuning);
  /// Registers the matrix of the logits, or its name as another one of the tied embeddings.
  void AddHead(const std::string& name, size_t embeddings);
  /// Allocates what the family registered: with adapters, and frozen or quantised, as the tuning says.
  /// \throws Error{kUsage} on adapters that the family cannot have
  void AllocateParameters();

  /// The family's work on a packed micro-batch.
  /// \param input outlives it
  virtual std::unique_ptr<LayerPass> NewPass(const DeviceInput& input) = 0;
  /// Runs all layers.
  at::Tensor RunForward(LayerPass& pass, const SpanTable& spans, Keep keep);
  /// Whether the backward pass of a layer finds what `stays` says.
  bool Keeps(Stays stays, size_t layer) const;

  const at::Tensor& Value(size_t index) const { return parameters_.all()[index].value; }
  at::Tensor Gradient(size_t index) { return parameters_.Gradient(index); }
  at::Tensor Temporary(Buffer& buffer, int64_t rows, int64_t columns);
  at::Tensor TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns);
  /// Of the type of the residual stream.
  at::Tensor TemporaryOfStream(Buffer& buffer, int64_t rows, int64_t columns);

  [[noreturn]] static void RefuseConfig(const std::string& field, const std::string& problem);
  /// \throws Error{kUsage} naming the first field that is not positive
  static void RequirePositive(std::initializer_list<std::pair<const char*, int64_t>> fields);

 private:
  /// The input of a forward pass that a backward pass may follow.
  struct Kept {
    at::Tensor tokens_n;  ///< the caller's
    DeviceInput input;
  };

  /// What a layer keeps of a tensor: memory of the stack's, or what an operator made.
  struct Saved {
    Buffer buffer;
    at::Tensor of_operator;
  };

  /// Has the modules trained whole that adapters are stored with.
  /// \returns whether the head is one of them
  /// \throws Error{kUsage}
  bool ThawSavedModules(const std::string& names);
  /// Adds what a model that embeds texts has beside its layers, and freezes a head that no loss reads.
  void AddEmbeddingPart(const EmbeddingTuning& tuning);
  /// Says which parameters the GEMMs alone read: matrices of layers, adapters, a head of its own.
  void MarkProducts();
  /// Where a layer keeps a tensor.
  Saved& SavedOf(size_t layer, size_t tensor);
  /// With recomputation layers share the buffers of what does not stay; with offload they take turns with
  /// those of as many layers as the stack has lanes.
  /// \param keep whether a backward pass follows
  /// \param backward whether the layer's forward pass is over
  LayerViews ViewsOf(size_t layer, const SpanTable& spans, Keep keep, bool backward = false);
  bool IsOfOperator(size_t tensor) const { return kept_tensors_[tensor].of_operator && offload_ == nullptr; }
  /// Takes what operators made in the forward pass of a layer, for the backward pass.
  void TakeFromOperators(size_t layer, const LayerViews& views);
  /// Notes how much that is, once it is of all layers.
  void CountFromOperators();
  /// Lets it go.
  void ReturnToOperators(size_t layer);
  /// Whether each layer has its own; the last one's stays in any case.
  bool StaysOfAll(Stays stays) const;
  /// What of a layer's views is there until the backward pass.
  std::vector<at::Tensor> WhatStays(const LayerViews& views) const;
  /// With offload: whose turn a layer has. Of the stack.
  size_t LaneOf(size_t layer) const;
  /// Whether what a layer keeps is offloaded: that of the last layers, one a lane, stays.
  bool IsOffloaded(size_t layer) const;
  /// Offloads it, once the layer's forward pass is over and before the next one's.
  void PutAway(size_t layer, const LayerViews& views);
  /// Queues what brings it back, from the last of these layers to the first.
  void StartBringingBack(size_t layer, const SpanTable& spans);
  /// Runs the layers backward, down to the lowest part that is trained.
  void RunBackward(LayerPass& pass, const SpanTable& spans, const at::Tensor& d_hidden_nd);
  /// Reports to the listener which segments were complete with the part of that number.
  void PartDone(size_t part) const;

  ModelConfig config_;
  Numerics numerics_;
  at::Device device_;
  FineTuning tuning_;
  FlatParameters parameters_;
  size_t head_ = 0;
  std::optional<size_t> projection_;
  std::vector<KeptTensor> kept_tensors_;
  std::vector<std::vector<Saved>> saved_;  ///< of a layer and a kept tensor
  int64_t most_operator_bytes_ = 0;        ///< what was kept of operators at a time
  std::optional<Kept> kept_;
  ActivationCheckpointing checkpointing_ = ActivationCheckpointing::kNo;
  OffloadStack* offload_ = nullptr;
  SegmentListener on_segment_done_;
  /// Parts are the embeddings (0), the layers from the lowest on, and what is above them. Of each segment of
  /// the gradients, the lowest part that adds to it.
  std::vector<size_t> lowest_part_of_segment_;
  size_t lowest_part_ = 0;  ///< that is trained
};

}  // namespace trainwright
