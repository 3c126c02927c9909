#include "lib/model/gelu_transformer.h"

#include <limits>

#include "lib/base/error.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/embedding/embedding.h"

namespace trainwright {
namespace {

LayerNormStatistics StatisticsOf(const at::Tensor& statistics_sn) {
  return {statistics_sn[0], statistics_sn[1]};
}

}  // namespace

const ModelConfig& GeluTransformer::CheckedConfig(const ModelConfig& config) {
  RequirePositive({{"vocab_size", config.vocab_size},
                   {"hidden size", config.hidden_size},
                   {"intermediate size", config.intermediate_size},
                   {"number of layers", config.num_layers},
                   {"number of heads", config.num_heads},
                   {"number of positions", config.max_positions}});
  if (config.hidden_size % config.num_heads != 0) {
    RefuseConfig("number of heads", "must divide the hidden size");
  }
  TRAINWRIGHT_CHECK(!config.llama_like() && config.num_kv_heads == config.num_heads &&
                    config.head_dim * config.num_heads == config.hidden_size && config.layer_windows.empty());
  return config;
}

GeluTransformer::GeluTransformer(const ModelConfig& config, const Numerics& numerics, at::Device device,
                                 const FineTuning& tuning)
    : Transformer(CheckedConfig(config), numerics, device,
                  {.norm_statistics = 2,
                   .mlp_inner = config.intermediate_size,
                   .parallel_residual = config.parallel_residual},
                  tuning) {}

int64_t GeluTransformer::positions_limit() const {
  return parts_.positions ? config().max_positions : std::numeric_limits<int64_t>::max();
}

GeluKind GeluTransformer::gelu_kind() const {
  return config().activation == Activation::kGelu ? GeluKind::kErf : GeluKind::kTanh;
}

Linear GeluTransformer::LinearOf(const Pair& projection) {
  const auto biases = projection.bias ? std::vector<size_t>{*projection.bias} : std::vector<size_t>();
  return Linear(&parameters(), {projection.weight}, biases);
}

RopeRows GeluTransformer::RopeRowsOf(const DeviceInput& input) {
  if (!parts_.rope) return {};
  return parts_.rope->RowsOf(input.positions_n, input.host_positions_n, input.spans.starts);
}

void GeluTransformer::ForwardAttention(size_t index, const RopeRows& rope, const Attend& attend,
                                       const at::Tensor& normed_nd, LayerViews& views) {
  parts_.layers[index].qkv.Forward(normed_nd, views.qkv);
  if (parts_.rope) {
    ApplyRope(numerics(), rope, ShapeOf(normed_nd.size(0), index), /*backward=*/false, views.qkv);
  } else if (numerics().emulated() && !config().biases.qkv) {
    RoundInto(numerics(), views.qkv, views.qkv);
  }
  attend(index, views);
}

void GeluTransformer::ForwardAgain(size_t index, const DeviceInput& input, const RopeRows& rope,
                                   LayerViews& views, BackwardScratch& scratch) {
  if (KeepsMlp(index)) return;
  const Layer& layer = parts_.layers[index];
  const bool parallel = config().parallel_residual;
  LayerNormStatistics middle_statistics = StatisticsOf(views.middle_statistics_sn);
  if (!KeepsAttention(index)) {
    LayerNormAgain(numerics(), views.input_nd, StatisticsOf(views.input_statistics_sn),
                   WeightsOf(layer.attention_norm), scratch.normed_nd);
    ForwardAttention(index, rope, PackedAttend(input), scratch.normed_nd, views);
  }
  if (KeepsAttention(index) || parallel) {
    LayerNormAgain(numerics(), parallel ? views.input_nd : views.middle_nd, middle_statistics,
                   WeightsOf(layer.mlp_norm), scratch.normed_nd);
  } else {
    layer.attention_out.ForwardWithoutBias(views.attention, scratch.d_normed_nd);
    AddLayerNorm(numerics(), views.input_nd, scratch.d_normed_nd, layer.attention_out.bias(),
                 WeightsOf(layer.mlp_norm), config().rms_norm_eps, views.middle_nd, scratch.normed_nd,
                 middle_statistics);
  }
  layer.up.ForwardWithoutBias(scratch.normed_nd, views.mlp_nf);
}

at::Tensor GeluTransformer::Forward(const DeviceInput& input, bool keep, const Attend& attend) {
  const int64_t num_tokens = input.num_tokens();
  const double epsilon = config().rms_norm_eps;
  const bool parallel = config().parallel_residual;
  const RopeRows rope = RopeRowsOf(input);
  ForwardScratch scratch = NewForwardScratch(num_tokens);
  at::Tensor stream = ViewsOf(0, num_tokens).input_nd, pending, pending_bias;
  Embed(Value(parts_.tokens), input.tokens_n, stream);
  if (parts_.positions) AddEmbedding(Value(*parts_.positions), input.positions_n, stream);
  for (size_t i = 0; i < parts_.layers.size(); ++i) {
    const Layer& layer = parts_.layers[i];
    LayerViews views = ViewsOf(keep ? i : 0, num_tokens);
    LayerNormStatistics input_statistics = StatisticsOf(views.input_statistics_sn),
                        middle_statistics = StatisticsOf(views.middle_statistics_sn);
    AddLayerNorm(numerics(), stream, pending, pending_bias, WeightsOf(layer.attention_norm), epsilon,
                 views.input_nd, scratch.normed_nd, input_statistics);
    ForwardAttention(i, rope, attend, scratch.normed_nd, views);
    at::Tensor attended = parallel ? scratch.parallel_update_nd : scratch.update_nd;
    if (parallel) {
      layer.attention_out.Forward(views.attention, attended);
      AddLayerNorm(numerics(), views.input_nd, {}, {}, WeightsOf(layer.mlp_norm), epsilon, views.middle_nd,
                   scratch.normed_nd, middle_statistics);
    } else {
      layer.attention_out.ForwardWithoutBias(views.attention, attended);
      AddLayerNorm(numerics(), views.input_nd, attended, layer.attention_out.bias(),
                   WeightsOf(layer.mlp_norm), epsilon, views.middle_nd, scratch.normed_nd, middle_statistics);
    }
    layer.up.ForwardWithoutBias(scratch.normed_nd, views.mlp_nf);  // keeps it without its bias
    Gelu(numerics(), gelu_kind(), views.mlp_nf, layer.up.bias(), scratch.activation_nf);
    pending = scratch.update_nd;
    layer.down.ForwardWithoutBias(scratch.activation_nf, pending);
    if (parallel) pending.add_(attended);
    pending_bias = layer.down.bias();
    if (keep) PutAway(i, views);
    stream = parallel ? views.input_nd : views.middle_nd;
  }
  at::Tensor output = OutputOf(num_tokens);
  LayerNormStatistics statistics = StatisticsOf(OutputStatisticsOf(num_tokens));
  AddLayerNorm(numerics(), stream, pending, pending_bias, WeightsOf(parts_.final_norm), epsilon, output,
               scratch.normed_nd, statistics);
  return scratch.normed_nd;
}

void GeluTransformer::Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) {
  const int64_t num_tokens = input.num_tokens();
  const AttentionShape shape = ShapeOf(num_tokens, 0);
  const bool parallel = config().parallel_residual;
  const RopeRows rope = RopeRowsOf(input);
  BackwardScratch scratch = NewBackwardScratch(num_tokens);
  const auto norm_backward = [&](const at::Tensor& d_out, const at::Tensor& x,
                                 const at::Tensor& statistics_sn, const Pair& norm) {
    at::Tensor d_weight = Gradient(norm.weight), d_bias = Gradient(norm.bias);
    LayerNormBackward(numerics(), d_out, x, StatisticsOf(statistics_sn), Value(norm.weight),
                      scratch.d_stream_nd, d_weight, d_bias);
  };
  norm_backward(d_hidden_nd, OutputOf(num_tokens), OutputStatisticsOf(num_tokens), parts_.final_norm);
  at::Tensor unwanted;
  for (size_t i = parts_.layers.size(); i-- > 0;) {
    const Layer& layer = parts_.layers[i];
    LayerViews views = BringBack(i, num_tokens);
    // Below the lowest adapter nothing is trained, so no gradient goes there. In a parallel layer the MLP
    // does not lie above attention.
    const bool below_layer = trains_base() || i > 0, below_attention = below_layer || layer.qkv.trains(),
               below_mlp = parallel ? below_layer : below_attention || layer.attention_out.trains(),
               below_down = below_mlp || layer.up.trains();
    const auto attention_out_backward = [&] {
      layer.attention_out.Backward(scratch.d_short_nd, views.attention,
                                   below_attention ? scratch.d_attention : unwanted);
    };

    ForwardAgain(i, input, rope, views, scratch);
    RefreshShort(scratch);
    if (parallel) attention_out_backward();  // the norms below add to what it reads
    Gelu(numerics(), gelu_kind(), views.mlp_nf, layer.up.bias(), scratch.activation_nf);
    layer.down.Backward(scratch.d_short_nd, scratch.activation_nf,
                        below_down ? scratch.d_activation_nf : unwanted);
    if (below_down) {
      GeluBackward(numerics(), gelu_kind(), scratch.d_activation_nf, layer.up.bias(), views.mlp_nf);
      const at::Tensor& mlp_input = parallel ? views.input_nd : views.middle_nd;
      LayerNormAgain(numerics(), mlp_input, StatisticsOf(views.middle_statistics_sn),
                     WeightsOf(layer.mlp_norm), scratch.normed_nd);
      layer.up.Backward(views.mlp_nf, scratch.normed_nd, below_mlp ? scratch.d_normed_nd : unwanted);
      if (below_mlp)
        norm_backward(scratch.d_normed_nd, mlp_input, views.middle_statistics_sn, layer.mlp_norm);
    }
    if (!parallel && !below_mlp) return;

    if (!parallel) {
      RefreshShort(scratch);
      attention_out_backward();
    }
    if (!below_attention) return;
    if (numerics().emulated()) RoundInto(numerics(), scratch.d_attention, scratch.d_attention);
    PackedAttentionBackward(numerics(), shape, scratch.d_attention, views.qkv, views.attention, views.lse_hn,
                            input.spans, scratch.d_qkv);
    if (parts_.rope) {
      ApplyRope(numerics(), rope, shape, /*backward=*/true, scratch.d_qkv);
    } else if (numerics().emulated()) {
      RoundInto(numerics(), scratch.d_qkv, scratch.d_qkv);
    }
    LayerNormAgain(numerics(), views.input_nd, StatisticsOf(views.input_statistics_sn),
                   WeightsOf(layer.attention_norm), scratch.normed_nd);
    layer.qkv.Backward(scratch.d_qkv, scratch.normed_nd, below_layer ? scratch.d_normed_nd : unwanted);
    if (!below_layer) return;
    norm_backward(scratch.d_normed_nd, views.input_nd, views.input_statistics_sn, layer.attention_norm);
  }
  at::Tensor d_tokens = Gradient(parts_.tokens), d_positions = Gradient(parts_.positions);
  if (d_tokens.defined()) EmbedBackward(scratch.d_stream_nd, input.tokens_n, d_tokens);
  if (d_positions.defined()) EmbedBackward(scratch.d_stream_nd, input.positions_n, d_positions);
}

}  // namespace trainwright
