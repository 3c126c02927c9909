#include "lib/model/layer_stack.h"

#include <algorithm>
#include <limits>

#include "lib/base/error.h"
#include "lib/model/apply_parameter_rules.h"
#include "lib/model/embedding_projection.h"
#include "lib/nn/scan/diagonal_scan.h"
#include "lib/spec/family.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {
namespace {

/// Drops elements of the adapters' inputs while it lives.
class DropoutPass {
 public:
  DropoutPass(LoraAdapters* adapters, const BodyInput& input, at::Device device)
      : adapters_(input.dropout ? adapters : nullptr) {
    if (adapters_ == nullptr) return;
    adapters_->StartDropout(*input.dropout, input.tokens_n.numel(), device, input.pin);
  }
  ~DropoutPass() {
    if (adapters_ != nullptr) adapters_->StopDropout();
  }
  DropoutPass(const DropoutPass&) = delete;
  DropoutPass& operator=(const DropoutPass&) = delete;

 private:
  LoraAdapters* adapters_;
};

/// Of each parameter the part of the model that adds to its gradient: its segment, or that of the weight
/// beside which it is an adapter.
std::vector<size_t> PartsOf(const FlatParameters& parameters) {
  std::vector<size_t> parts;
  for (const Parameter& parameter : parameters.all()) parts.push_back(parameter.segment);
  if (parameters.adapters() == nullptr) return parts;
  for (const LoraModule& module : parameters.adapters()->modules()) {
    parts[module.a] = parts[module.b] = parts[module.weight];
    if (parameters.adapters()->options().dora) parts[module.magnitude] = parts[module.weight];
  }
  return parts;
}

}  // namespace

LayerStack::LayerStack(const ModelConfig& config, const Numerics& numerics, at::Device device,
                       std::vector<KeptTensor> kept, const FineTuning& tuning)
    : config_(config),
      numerics_(numerics),
      device_(device),
      tuning_(tuning),
      kept_tensors_(std::move(kept)),
      saved_(static_cast<size_t>(config.num_layers), std::vector<Saved>(kept_tensors_.size())) {}

void LayerStack::AddHead(const std::string& name, size_t embeddings) {
  if (config_.tie_embeddings) {
    parameters_.AddAlias(name, embeddings);
    head_ = embeddings;
  } else {
    head_ = parameters_.Add(name, {config_.vocab_size, config_.hidden_size}, true);
  }
}

void LayerStack::AllocateParameters() {
  const std::vector<size_t> matrices = LayerMatrices(parameters_);
  if (tuning_.lora) {
    parameters_.set_adapters(
        std::make_shared<LoraAdapters>(*tuning_.lora, FamilyOf(config_).lora_blocks(), &parameters_));
  }
  const bool saves_head = tuning_.lora && ThawSavedModules(tuning_.lora->saved_modules);
  if (tuning_.frozen_format != WeightFormat::kPlain) {
    for (const size_t index : matrices) parameters_.Quantize(index, tuning_.frozen_format);
  }
  if (tuning_.frozen_format == WeightFormat::kInt8 && !config_.tie_embeddings && !saves_head) {
    parameters_.Quantize(head_, WeightFormat::kInt8);
  }
  // Behind the adapters, which freeze all that was there before them.
  if (tuning_.embedding) AddEmbeddingPart(*tuning_.embedding);
  ApplyParameterRules(tuning_.rules, &parameters_);
  MarkProducts();
  parameters_.Allocate(numerics_, device_);
  const std::vector<size_t> parts = PartsOf(parameters_);
  const std::vector<GradientBuffer::Segment>& segments = parameters_.gradient_buffer().segments();
  lowest_part_of_segment_.assign(segments.size(), std::numeric_limits<size_t>::max());
  lowest_part_ = std::numeric_limits<size_t>::max();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Parameter& parameter = parameters_.all()[i];
    if (!parameter.trainable) continue;
    lowest_part_ = std::min(lowest_part_, parts[i]);
    for (size_t s = 0; s < segments.size(); ++s) {
      if (parameter.offset < segments[s].begin || parameter.offset >= segments[s].end) continue;
      lowest_part_of_segment_[s] = std::min(lowest_part_of_segment_[s], parts[i]);
    }
  }
}

bool LayerStack::ThawSavedModules(const std::string& names) {
  const SavedModules saved =
      ChooseSavedModules(names, FamilyOf(config_).outer_modules(), config_.tie_embeddings);
  if (saved.head && !config_.tie_embeddings && tuning_.embedding && !tuning_.embedding->train_head) {
    throw Error(ErrorCode::kUsage, "--lora-save-modules " + names,
                "names the head, and no loss of this run reads the logits", "", "leave the head out");
  }
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    const std::string& name = parameters_.all()[i].name;
    parameters_[i].trainable |= std::any_of(
        saved.modules.begin(), saved.modules.end(),
        [&](const std::string& module) { return name == module + ".weight" || name == module + ".bias"; });
  }
  return saved.head;
}

void LayerStack::AddEmbeddingPart(const EmbeddingTuning& tuning) {
  if (!tuning.train_head && !config_.tie_embeddings) parameters_.Freeze(head_);
  if (!config_.tie_embeddings) parameters_[head_].may_lack = !tuning.needs_head;
  if (tuning.projection == 0) return;
  if (tuning.projection < 0) {
    throw Error(ErrorCode::kUsage, "projection",
                "must be at least 0, not " + std::to_string(tuning.projection));
  }
  projection_ = AddProjection(tuning.projection, config_.hidden_size, &parameters_);
}

void LayerStack::MarkProducts() {
  for (const size_t index : LayerMatrices(parameters_)) parameters_[index].of_products = true;
  if (!config_.tie_embeddings) parameters_[head_].of_products = true;
  if (parameters_.adapters() == nullptr) return;
  for (const LoraModule& module : parameters_.adapters()->modules()) {
    parameters_[module.a].of_products = parameters_[module.b].of_products = true;
  }
}

int64_t LayerStack::positions_limit() const {
  return std::numeric_limits<int64_t>::max();
}

void LayerStack::RefuseConfig(const std::string& field, const std::string& problem) {
  throw Error(ErrorCode::kUsage, "model config", field + " " + problem);
}

void LayerStack::RequirePositive(std::initializer_list<std::pair<const char*, int64_t>> fields) {
  for (const auto& [field, value] : fields) {
    if (value <= 0) RefuseConfig(field, "must be positive, not " + std::to_string(value));
  }
}

void LayerStack::set_activation_checkpointing(ActivationCheckpointing kind) {
  const bool keeps_more = std::any_of(kept_tensors_.begin(), kept_tensors_.end(),
                                      [](const KeptTensor& kept) { return kept.stays == Stays::kIfLeast; });
  if (kind == ActivationCheckpointing::kLeast && !keeps_more) {
    throw Error(ErrorCode::kUsage, "--checkpoint-activations",
                std::string("least has no meaning for a model of the family ") +
                    FamilyOf(config_).model_type() + ", which computes the activation of its MLP in parts",
                "", "write no");
  }
  checkpointing_ = kind;
}

at::Tensor LayerStack::Temporary(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, numerics_.storage, device_);
}

at::Tensor LayerStack::TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, at::kFloat, device_);
}

at::Tensor LayerStack::TemporaryOfStream(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, numerics_.residual_storage(), device_);
}

bool LayerStack::StaysOfAll(Stays stays) const {
  switch (stays) {
    case Stays::kAlways:
      return true;
    case Stays::kUnlessFull:
      return checkpointing_ != ActivationCheckpointing::kFull;
    case Stays::kUnlessSelectiveOrFull:
      return checkpointing_ == ActivationCheckpointing::kNo ||
             checkpointing_ == ActivationCheckpointing::kLeast;
    case Stays::kIfLeast:
      return checkpointing_ == ActivationCheckpointing::kLeast;
  }
  return true;
}

bool LayerStack::Keeps(Stays stays, size_t layer) const {
  return StaysOfAll(stays) || layer + 1 == saved_.size();
}

LayerStack::Saved& LayerStack::SavedOf(size_t layer, size_t tensor) {
  const bool stays = StaysOfAll(kept_tensors_[tensor].stays);
  return saved_[!stays ? 0 : offload_ != nullptr ? LaneOf(layer) : layer][tensor];
}

LayerViews LayerStack::ViewsOf(size_t layer, const SpanTable& spans, Keep keep, bool backward) {
  LayerViews views;
  for (size_t i = 0; i < kept_tensors_.size(); ++i) {
    const KeptTensor& kept = kept_tensors_[i];
    if (kept.in_parts && (!StaysOfAll(kept.stays) || keep == Keep::kNothing)) {
      views.emplace_back();
      continue;
    }
    if (IsOfOperator(i)) {
      views.push_back(backward && Keeps(kept.stays, layer) ? SavedOf(layer, i).of_operator : at::Tensor());
      continue;
    }
    Buffer& buffer = SavedOf(layer, i).buffer;
    const int64_t rows = kept.chunk > 0 ? CountScanChunks(spans, kept.chunk) : spans.starts.back();
    const std::vector<int64_t> shape =
        kept.tokens_last ? std::vector<int64_t>{kept.width, rows} : std::vector<int64_t>{rows, kept.width};
    views.push_back(buffer.Get(shape, kept.dtype, device_));
  }
  return views;
}

void LayerStack::TakeFromOperators(size_t layer, const LayerViews& views) {
  for (size_t i = 0; i < kept_tensors_.size(); ++i) {
    if (IsOfOperator(i)) SavedOf(layer, i).of_operator = views[i];
  }
}

void LayerStack::CountFromOperators() {
  int64_t bytes = 0;
  for (const std::vector<Saved>& of_layer : saved_) {
    for (const Saved& saved : of_layer) {
      if (saved.of_operator.defined()) bytes += static_cast<int64_t>(saved.of_operator.nbytes());
    }
  }
  most_operator_bytes_ = std::max(most_operator_bytes_, bytes);
}

void LayerStack::ReturnToOperators(size_t layer) {
  for (size_t i = 0; i < kept_tensors_.size(); ++i) SavedOf(layer, i).of_operator.reset();
}

std::vector<at::Tensor> LayerStack::WhatStays(const LayerViews& views) const {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < views.size(); ++i) {
    if (StaysOfAll(kept_tensors_[i].stays)) tensors.push_back(views[i]);
  }
  return tensors;
}

size_t LayerStack::LaneOf(size_t layer) const {
  return layer % static_cast<size_t>(offload_->lanes());
}

bool LayerStack::IsOffloaded(size_t layer) const {
  return offload_ != nullptr && layer + static_cast<size_t>(offload_->lanes()) < saved_.size();
}

void LayerStack::PutAway(size_t layer, const LayerViews& views) {
  if (IsOffloaded(layer)) offload_->Push(WhatStays(views), static_cast<int64_t>(LaneOf(layer)));
}

void LayerStack::StartBringingBack(size_t layer, const SpanTable& spans) {
  if (!IsOffloaded(layer) || layer + 1 < lowest_part_) return;
  offload_->Pop(WhatStays(ViewsOf(layer, spans, Keep::kForBackward, /*backward=*/true)),
                static_cast<int64_t>(LaneOf(layer)));
}

void LayerStack::Check(const BodyInput& input) const {
  CheckInput(input, config_.vocab_size, positions_limit());
}

at::Tensor LayerStack::Forward(const BodyInput& input, Keep keep) {
  TRAINWRIGHT_CHECK(!input.continues || carries_state());
  Check(input);
  kept_.reset();
  DeviceInput on_device = ToDevice(input, config_.vocab_size, device_);
  const DropoutPass dropping(parameters_.adapters(), input, device_);
  const at::Tensor hidden_nd = RunForward(*NewPass(on_device), on_device.spans, keep);
  if (keep == Keep::kForBackward) kept_.emplace(Kept{input.tokens_n, std::move(on_device)});
  return hidden_nd;
}

void LayerStack::Backward(const BodyInput& input, const at::Tensor& d_hidden_nd) {
  TRAINWRIGHT_CHECK(kept_ && kept_->tokens_n.is_same(input.tokens_n));
  const Kept kept = *std::exchange(kept_, std::nullopt);
  const DropoutPass dropping(parameters_.adapters(), input, device_);
  RunBackward(*NewPass(kept.input), kept.input.spans, d_hidden_nd);
}

at::Tensor LayerStack::RunForward(LayerPass& pass, const SpanTable& spans, Keep keep) {
  kept_.reset();
  if (offload_ != nullptr) offload_->Clear();  // what a pass left that did not come to its end
  if (keep == Keep::kForBackward) {
    for (size_t i = 0; i < saved_.size(); ++i) ReturnToOperators(i);  // of a pass that none went back through
  }
  Residual residual{.stream_nd = ViewsOf(0, spans, keep)[0]};
  pass.Embed(residual.stream_nd);
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (offload_ != nullptr && keep == Keep::kForBackward) offload_->Await(static_cast<int64_t>(LaneOf(i)));
    LayerViews views = ViewsOf(keep == Keep::kForBackward ? i : 0, spans, keep);
    pass.Forward(i, views, residual);
    if (keep == Keep::kNothing) continue;
    TakeFromOperators(i, views);
    PutAway(i, views);
  }
  if (keep == Keep::kForBackward) CountFromOperators();
  return pass.Finish(residual);
}

void LayerStack::RunBackward(LayerPass& pass, const SpanTable& spans, const at::Tensor& d_hidden_nd) {
  pass.BeginBackward(d_hidden_nd);
  PartDone(saved_.size() + 1);
  for (size_t i = saved_.size(); i-- > 0;) {
    const size_t part = i + 1;
    if (part < lowest_part_) return;
    if (offload_ != nullptr) {
      // The lane of the layer above is free now: that of the next one that is not in its lane yet.
      const auto lanes = static_cast<size_t>(offload_->lanes());
      if (i + 1 >= lanes) StartBringingBack(i + 1 - lanes, spans);
      offload_->Await(static_cast<int64_t>(LaneOf(i)));
    }
    LayerViews views = ViewsOf(i, spans, Keep::kForBackward, /*backward=*/true);
    pass.ForwardAgain(i, views);
    // Which of a layer's parameters are frozen by their names the layers do not ask: its whole pass is run.
    pass.Backward(i, views, /*below=*/lowest_part_ < part || !tuning_.rules.freeze.empty());
    ReturnToOperators(i);
    PartDone(part);
  }
  if (lowest_part_ > 0) return;
  pass.EmbedBackward();
  PartDone(0);
}

void LayerStack::PartDone(size_t part) const {
  if (!on_segment_done_) return;
  for (size_t segment = 0; segment < lowest_part_of_segment_.size(); ++segment) {
    if (lowest_part_of_segment_[segment] == part) on_segment_done_(segment);
  }
}

int64_t LayerStack::activation_bytes() const {
  int64_t bytes = parameters_.scratch_bytes() + most_operator_bytes_;
  for (const std::vector<Saved>& of_layer : saved_) {
    for (const Saved& saved : of_layer) bytes += saved.buffer.bytes();
  }
  return bytes + (parameters_.adapters() != nullptr ? parameters_.adapters()->workspace_bytes() : 0);
}

int64_t LayerStack::pass_memory_bytes() const {
  return activation_bytes() - most_operator_bytes_;
}

void LayerStack::ReleaseActivations() {
  kept_.reset();
  most_operator_bytes_ = 0;
  for (std::vector<Saved>& of_layer : saved_) of_layer.assign(of_layer.size(), Saved());
}

}  // namespace trainwright
