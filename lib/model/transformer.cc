#include "lib/model/transformer.h"

#include <vector>

#include "lib/base/error.h"
#include "lib/model/cached_decoder.h"
#include "lib/nn/attention/attention_backend.h"

namespace trainwright {

Transformer::Transformer(const ModelConfig& config, const Numerics& numerics, at::Device device,
                         const Sizes& sizes, const FineTuning& tuning)
    : LayerStack(config, numerics, device, KeptTensors(config, numerics, device, sizes), tuning),
      sizes_(sizes) {
  ResolveAttentionBackend(numerics.attention, config.head_dim, numerics.storage, device);  // refuses early
}

std::vector<KeptTensor> Transformer::KeptTensors(const ModelConfig& config, const Numerics& numerics,
                                                 at::Device device, const Sizes& sizes) {
  const int64_t queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  const KeptTensor statistics{.width = sizes.norm_statistics, .tokens_last = true};
  // Torch's kernels for GPUs return them; those of a CPU write them.
  const bool of_operator = !device.is_cpu() && !device.is_meta();
  // In the order of Views.
  std::vector<KeptTensor> kept = {
      {.width = config.hidden_size, .dtype = numerics.residual_storage()},
      statistics,
      statistics,
      {.stays = Stays::kUnlessFull, .width = queries + 2 * keys, .dtype = numerics.storage},
      {.stays = Stays::kUnlessFull, .width = queries, .dtype = numerics.storage, .of_operator = of_operator},
      {.stays = Stays::kUnlessFull,
       .width = config.num_heads,
       .tokens_last = true,
       .of_operator = of_operator},
      {.stays = Stays::kUnlessSelectiveOrFull, .width = sizes.mlp_inner, .dtype = numerics.storage},
      {.stays = Stays::kIfLeast,
       .width = config.intermediate_size,
       .dtype = numerics.storage,
       .in_parts = true}};
  if (!sizes.parallel_residual) {
    kept.push_back(
        {.stays = Stays::kUnlessFull, .width = config.hidden_size, .dtype = numerics.residual_storage()});
  }
  return kept;
}

Transformer::Views Transformer::Named(const LayerViews& views) {
  return {views[0], views[1], views[2],
          views[3], views[4], views[5],
          views[6], views[7], views.size() > 8 ? views[8] : at::Tensor()};
}

void Transformer::HandOver(const Views& views, LayerViews& kept) {
  kept[4] = views.attention;
  kept[5] = views.lse_hn;
}

AttentionShape Transformer::ShapeOf(int64_t num_tokens, size_t layer, AttentionMask mask) const {
  const int64_t window = WindowOf(config(), static_cast<int64_t>(layer));
  // transformers' sliding_window counts the token itself under the causal mask, and not under the other.
  const bool is_wider = window != 0 && mask == AttentionMask::kBidirectional;
  return {num_tokens,
          config().num_heads,
          config().num_kv_heads,
          config().head_dim,
          is_wider ? window + 1 : window,
          mask};
}

Transformer::ForwardScratch Transformer::NewForwardScratch(int64_t num_tokens) {
  const int64_t width = config().hidden_size;
  return {Temporary(normed_, num_tokens, width), Temporary(update_, num_tokens, width),
          Temporary(activation_, num_tokens, config().intermediate_size),
          sizes_.parallel_residual ? Temporary(parallel_update_, num_tokens, width) : at::Tensor()};
}

Transformer::BackwardScratch Transformer::NewBackwardScratch(int64_t num_tokens) {
  const int64_t width = config().hidden_size, wide = config().intermediate_size;
  const AttentionShape shape = ShapeOf(num_tokens, 0);
  BackwardScratch scratch;
  scratch.normed_nd = Temporary(normed_, num_tokens, width);
  scratch.d_normed_nd = Temporary(d_normed_, num_tokens, width);
  scratch.activation_nf = Temporary(activation_, num_tokens, wide);
  scratch.d_activation_nf = Temporary(d_activation_, num_tokens, wide);
  scratch.d_attention = Temporary(d_attention_, num_tokens, shape.num_heads * shape.head_dim);
  scratch.d_qkv = Temporary(d_qkv_, num_tokens, shape.row());
  scratch.d_stream_nd = TemporaryOfStream(d_stream_, num_tokens, width);
  scratch.d_stream_nd.zero_();
  const bool rounds = numerics().precision != numerics().residual;
  if (rounds) scratch.d_rounded_nd = Temporary(d_short_, num_tokens, width);
  scratch.d_short_nd = rounds ? scratch.d_rounded_nd : scratch.d_stream_nd;
  return scratch;
}

Transformer::Attend Transformer::PackedAttend(const DeviceInput& input) const {
  return [this, &input](size_t layer, Views& views) {
    PackedAttention(numerics(), ShapeOf(input.num_tokens(), layer, input.mask), views.qkv, input.spans,
                    views.attention, views.lse_hn);
  };
}

at::Tensor Transformer::ForwardWith(const DeviceInput& input, const Attend& attend) {
  return RunForward(*NewPass(input, attend), input.spans, Keep::kNothing);
}

SpanDependence Transformer::DependenceOn(const std::vector<int32_t>& starts, AttentionMask mask) const {
  const SpanTable spans(starts);
  // Frequencies of a longer sequence come from the host.
  if (rope() != nullptr && rope()->rope().LengthClass(spans.longest()) != 0) return SpanDependence::kHost;
  for (size_t layer = 0; layer < static_cast<size_t>(config().num_layers); ++layer) {
    const AttentionShape shape = ShapeOf(spans.starts.back(), layer, mask);
    // One call of flash takes them all, from the device; the others have a call a span.
    const bool at_once = AttentionBackendOf(numerics(), shape, spans, device()) == AttentionBackend::kFlash;
    if (!at_once) return device().is_cpu() ? SpanDependence::kHost : SpanDependence::kTable;
  }
  return SpanDependence::kNumber;
}

int64_t Transformer::pass_memory_bytes() const {
  return LayerStack::pass_memory_bytes() + (rope() == nullptr ? 0 : rope()->bytes());
}

int64_t Transformer::activation_bytes() const {
  int64_t bytes = LayerStack::activation_bytes();
  for (const Buffer* buffer :
       {&output_, &output_statistics_, &normed_, &update_, &parallel_update_, &activation_, &d_stream_,
        &d_short_, &d_normed_, &d_activation_, &d_attention_, &d_qkv_}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

void Transformer::ReleaseActivations() {
  LayerStack::ReleaseActivations();
  for (Buffer* buffer : {&output_, &output_statistics_, &normed_, &update_, &parallel_update_, &activation_,
                         &d_stream_, &d_short_, &d_normed_, &d_activation_, &d_attention_, &d_qkv_}) {
    *buffer = Buffer();
  }
}

std::unique_ptr<BodyDecoder> Transformer::NewDecoder(int64_t max_tokens, int64_t sequences) {
  return std::make_unique<CachedDecoder>(this, max_tokens, sequences);
}

}  // namespace trainwright
