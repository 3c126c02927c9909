#include "lib/model/transformer.h"

#include <ATen/ops/empty.h>

#include "lib/base/error.h"
#include "lib/model/cached_decoder.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/linear/matmul.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

/// Drops elements of the adapters' inputs while it lives.
class DropoutPass {
 public:
  DropoutPass(LoraAdapters* adapters, const std::optional<DropoutPosition>& position) : adapters_(adapters) {
    if (adapters_ != nullptr) adapters_->set_dropout(position);
  }
  ~DropoutPass() {
    if (adapters_ != nullptr) adapters_->set_dropout(std::nullopt);
  }
  DropoutPass(const DropoutPass&) = delete;
  DropoutPass& operator=(const DropoutPass&) = delete;

 private:
  LoraAdapters* adapters_;
};

}  // namespace

Transformer::Transformer(const ModelConfig& config, const Numerics& numerics, at::Device device,
                         const Sizes& sizes, const FineTuning& tuning)
    : config_(config), numerics_(numerics), device_(device), sizes_(sizes), tuning_(tuning), loss_(numerics) {
  ResolveAttentionBackend(numerics.attention, config.head_dim, numerics.storage, device);  // refuses early
  saved_.resize(config.num_layers);
}

void Transformer::AllocateParameters() {
  TRAINWRIGHT_CHECK(tuning_.lora || tuning_.frozen_format == WeightFormat::kPlain);
  if (tuning_.lora) {
    const std::vector<size_t> matrices = LayerMatrices(parameters_);
    parameters_.set_adapters(
        std::make_shared<LoraAdapters>(*tuning_.lora, FamilyOf(config_).lora_blocks(), &parameters_));
    if (tuning_.frozen_format == WeightFormat::kNf4) {
      for (const size_t index : matrices) parameters_.Quantize(index);
    }
  }
  parameters_.Allocate(numerics_, device_);
}

void Transformer::RefuseConfig(const std::string& field, const std::string& problem) {
  throw Error(ErrorCode::kUsage, "model config", field + " " + problem);
}

void Transformer::RequirePositive(std::initializer_list<std::pair<const char*, int64_t>> fields) {
  for (const auto& [field, value] : fields) {
    if (value <= 0) RefuseConfig(field, "must be positive, not " + std::to_string(value));
  }
}

size_t Transformer::AddHead(const std::string& name, size_t embeddings) {
  if (!config_.tie_embeddings) return parameters_.Add(name, {config_.vocab_size, config_.hidden_size}, true);
  parameters_.AddAlias(name, embeddings);
  return embeddings;
}

AttentionShape Transformer::ShapeOf(int64_t num_tokens, size_t layer) const {
  return {num_tokens, config_.num_heads, config_.num_kv_heads, config_.head_dim,
          config_.window(static_cast<int64_t>(layer))};
}

at::Tensor Transformer::Temporary(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, numerics_.storage, device_);
}

at::Tensor Transformer::TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, at::kFloat, device_);
}

bool Transformer::KeepsAttention(size_t layer) const {
  return activation_checkpointing() != ActivationCheckpointing::kFull || layer + 1 == saved_.size();
}

bool Transformer::KeepsMlp(size_t layer) const {
  return activation_checkpointing() == ActivationCheckpointing::kNo || layer + 1 == saved_.size();
}

Transformer::LayerViews Transformer::ViewsOf(size_t layer, int64_t num_tokens) {
  Saved& saved = saved_[offload() != nullptr ? 0 : layer];
  Saved& attention = activation_checkpointing() == ActivationCheckpointing::kFull ? saved_[0] : saved;
  Saved& mlp = activation_checkpointing() == ActivationCheckpointing::kNo ? saved : saved_[0];
  const AttentionShape shape = ShapeOf(num_tokens, layer);
  LayerViews views;
  views.input_nd = TemporaryFp32(saved.input, num_tokens, config_.hidden_size);
  if (!sizes_.parallel_residual) {
    views.middle_nd = TemporaryFp32(attention.middle, num_tokens, config_.hidden_size);
  }
  views.input_statistics_sn = TemporaryFp32(saved.input_statistics, sizes_.norm_statistics, num_tokens);
  views.middle_statistics_sn = TemporaryFp32(saved.middle_statistics, sizes_.norm_statistics, num_tokens);
  views.qkv = Temporary(attention.qkv, num_tokens, shape.row());
  views.attention = Temporary(attention.attention, num_tokens, shape.num_heads * shape.head_dim);
  views.lse_hn = TemporaryFp32(attention.lse, shape.num_heads, num_tokens);
  views.mlp_nf = Temporary(mlp.mlp, num_tokens, sizes_.mlp_inner);
  return views;
}

std::vector<at::Tensor> Transformer::WhatStays(const LayerViews& views) const {
  std::vector<at::Tensor> tensors = {views.input_nd, views.input_statistics_sn, views.middle_statistics_sn};
  if (activation_checkpointing() != ActivationCheckpointing::kFull) {
    if (views.middle_nd.defined()) tensors.push_back(views.middle_nd);
    tensors.insert(tensors.end(), {views.qkv, views.attention, views.lse_hn});
  }
  if (activation_checkpointing() == ActivationCheckpointing::kNo) tensors.push_back(views.mlp_nf);
  return tensors;
}

void Transformer::PutAway(size_t layer, const LayerViews& views) {
  if (offload() == nullptr || layer + 1 == saved_.size()) return;
  if (layer == 0) offload()->Clear();  // what a pass left that did not come to its end
  for (const at::Tensor& tensor : WhatStays(views)) offload()->Push(tensor);
}

Transformer::LayerViews Transformer::BringBack(size_t layer, int64_t num_tokens) {
  LayerViews views = ViewsOf(layer, num_tokens);
  if (offload() == nullptr || layer + 1 == saved_.size()) return views;
  std::vector<at::Tensor> tensors = WhatStays(views);
  for (size_t i = tensors.size(); i-- > 0;) offload()->Pop(tensors[i]);
  return views;
}

Transformer::ForwardScratch Transformer::NewForwardScratch(int64_t num_tokens) {
  const int64_t width = config_.hidden_size;
  return {Temporary(normed_, num_tokens, width), Temporary(update_, num_tokens, width),
          Temporary(activation_, num_tokens, config_.intermediate_size),
          sizes_.parallel_residual ? Temporary(parallel_update_, num_tokens, width) : at::Tensor()};
}

Transformer::BackwardScratch Transformer::NewBackwardScratch(int64_t num_tokens) {
  const int64_t width = config_.hidden_size, wide = config_.intermediate_size;
  const AttentionShape shape = ShapeOf(num_tokens, 0);
  BackwardScratch scratch;
  scratch.normed_nd = Temporary(normed_, num_tokens, width);
  scratch.d_normed_nd = Temporary(d_normed_, num_tokens, width);
  scratch.activation_nf = Temporary(activation_, num_tokens, wide);
  scratch.d_activation_nf = Temporary(d_activation_, num_tokens, wide);
  scratch.d_attention = Temporary(d_attention_, num_tokens, shape.num_heads * shape.head_dim);
  scratch.d_qkv = Temporary(d_qkv_, num_tokens, shape.row());
  scratch.d_stream_nd = TemporaryFp32(d_stream_, num_tokens, width);
  scratch.d_stream_nd.zero_();
  scratch.d_short_nd =
      numerics_.precision == Precision::kFp32 ? scratch.d_stream_nd : Temporary(d_short_, num_tokens, width);
  return scratch;
}

void Transformer::RefreshShort(BackwardScratch& scratch) const {
  if (numerics_.precision != Precision::kFp32) RoundInto(numerics_, scratch.d_stream_nd, scratch.d_short_nd);
}

DeviceInput Transformer::Checked(const ModelInput& input) const {
  CheckInput(input, config_.vocab_size, positions_limit());
  return ToDevice(input, config_.vocab_size, device_);
}

Transformer::Attend Transformer::PackedAttend(const DeviceInput& input) const {
  return [this, &input](size_t layer, LayerViews& views) {
    PackedAttention(numerics_, ShapeOf(input.num_tokens(), layer), views.qkv, input.spans, views.attention,
                    views.lse_hn);
  };
}

at::Tensor Transformer::ForwardPacked(const DeviceInput& input, bool keep) {
  return Forward(input, keep, PackedAttend(input));
}

at::Tensor Transformer::LogitsOf(const at::Tensor& hidden_nd) const {
  at::Tensor logits = at::empty({hidden_nd.size(0), config_.vocab_size}, hidden_nd.options());
  Matmul(hidden_nd, HeadMatrix().t(), logits);
  if (numerics_.emulated()) RoundInto(numerics_, logits, logits);
  return logits.to(at::kFloat);
}

LossSum Transformer::Loss(const ModelInput& input) {
  return loss_.Loss(ForwardPacked(Checked(input), /*keep=*/false), HeadMatrix(), input.labels_n, input.pin);
}

LossSum Transformer::LossAndGradients(const ModelInput& input, const GradientScale& scale) {
  const DeviceInput on_device = Checked(input);
  const DropoutPass dropping(parameters_.adapters(), input.dropout);
  const at::Tensor hidden = ForwardPacked(on_device, /*keep=*/true);
  at::Tensor d_hidden = Temporary(d_normed_, hidden.size(0), hidden.size(1));
  const LossSum loss = loss_.LossAndGradients(hidden, HeadMatrix(), input.labels_n, loss_terms(), scale,
                                              d_hidden, Gradient(head()), input.pin);
  Backward(on_device, d_hidden);
  return loss;
}

at::Tensor Transformer::Logits(const ModelInput& input) {
  return LogitsOf(ForwardPacked(Checked(input), /*keep=*/false));
}

ModelMemory Transformer::memory() const {
  ModelMemory memory{.logits_bytes = loss_.workspace_bytes()};
  const auto add = [&](std::initializer_list<const Buffer*> buffers) {
    for (const Buffer* buffer : buffers) memory.activation_bytes += buffer->bytes();
  };
  for (const Saved& saved : saved_) {
    add({&saved.input, &saved.middle, &saved.input_statistics, &saved.middle_statistics, &saved.qkv,
         &saved.attention, &saved.lse, &saved.mlp});
  }
  add({&output_, &output_statistics_, &normed_, &update_, &parallel_update_, &activation_, &d_stream_,
       &d_short_, &d_normed_, &d_activation_, &d_attention_, &d_qkv_});
  memory.activation_bytes += parameters_.scratch_bytes();
  if (parameters_.adapters() != nullptr) memory.activation_bytes += parameters_.adapters()->workspace_bytes();
  return memory;
}

void Transformer::ReleaseActivations() {
  saved_.assign(saved_.size(), Saved());
  for (Buffer* buffer : {&output_, &output_statistics_, &normed_, &update_, &parallel_update_, &activation_,
                         &d_stream_, &d_short_, &d_normed_, &d_activation_, &d_attention_, &d_qkv_}) {
    *buffer = Buffer();
  }
  loss_ = LinearCrossEntropy(numerics_);
}

std::unique_ptr<Decoder> Transformer::NewDecoder(int64_t max_tokens, int64_t sequences) {
  return std::make_unique<CachedDecoder>(this, max_tokens, sequences);
}

}  // namespace trainwright
