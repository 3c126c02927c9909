#include "lib/model/llama.h"

#include <string>

#include "lib/base/error.h"
#include "lib/model/initialize.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/activation/swiglu.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/norm/rms_norm.h"

namespace trainwright {

const ModelConfig& Llama::CheckedConfig(const ModelConfig& config) {
  RequirePositive({{"vocab_size", config.vocab_size},
                   {"hidden_size", config.hidden_size},
                   {"intermediate_size", config.intermediate_size},
                   {"num_hidden_layers", config.num_layers},
                   {"num_attention_heads", config.num_heads},
                   {"num_key_value_heads", config.num_kv_heads},
                   {"head_dim", config.head_dim},
                   {"max_position_embeddings", config.max_positions}});
  if (config.num_heads % config.num_kv_heads != 0) {
    RefuseConfig("num_attention_heads", "(" + std::to_string(config.num_heads) +
                                            ") is no multiple of num_key_value_heads (" +
                                            std::to_string(config.num_kv_heads) + ")");
  }
  if (config.head_dim % 2 != 0) RefuseConfig("head_dim", "must be even for rotary positions");
  const Biases& biases = config.biases;
  TRAINWRIGHT_CHECK(config.llama_like() && config.rope.partial_rotary_factor == 1.0 && !biases.norm &&
                    (config.layer_windows.empty() ||
                     static_cast<int64_t>(config.layer_windows.size()) == config.num_layers));
  return config;
}

Llama::Llama(const ModelConfig& config, const Numerics& numerics, at::Device device,
             std::optional<uint64_t> seed, const FineTuning& tuning)
    : Transformer(CheckedConfig(config), numerics, device, {.mlp_inner = 2 * config.intermediate_size},
                  tuning),
      rope_(config.rope, config.head_dim, device) {
  FlatParameters& parameters = this->parameters();
  struct Indices {
    size_t attention_norm, mlp_norm;
    std::vector<size_t> qkv, attention_out, gate_up, down;
    std::vector<size_t> qkv_biases, attention_out_biases, gate_up_biases, down_biases;
  };
  const Biases& biases = config.biases;
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const int64_t query = config.num_heads * config.head_dim, key = config.num_kv_heads * config.head_dim;
  embedding_ = parameters.Add("model.embed_tokens.weight", {config.vocab_size, width}, true);
  std::vector<Indices> indices;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.StartSegment();
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
      return parameters.Add(prefix + name + ".weight", {rows, columns}, true);
    };
    const auto norm = [&](const char* name) {
      return parameters.Add(prefix + name + ".weight", {width}, false);
    };
    const auto bias = [&](bool biased, const char* name, int64_t size, std::vector<size_t>* indices_of) {
      if (biased) indices_of->push_back(parameters.Add(prefix + name + ".bias", {size}, false));
    };
    Indices i{};
    i.attention_norm = norm("input_layernorm");
    i.qkv = {matrix("self_attn.q_proj", query, width), matrix("self_attn.k_proj", key, width),
             matrix("self_attn.v_proj", key, width)};
    bias(biases.qkv, "self_attn.q_proj", query, &i.qkv_biases);
    bias(biases.qkv, "self_attn.k_proj", key, &i.qkv_biases);
    bias(biases.qkv, "self_attn.v_proj", key, &i.qkv_biases);
    i.attention_out = {matrix("self_attn.o_proj", width, query)};
    bias(biases.attention_out, "self_attn.o_proj", width, &i.attention_out_biases);
    i.mlp_norm = norm("post_attention_layernorm");
    i.gate_up = {matrix("mlp.gate_proj", wide, width), matrix("mlp.up_proj", wide, width)};
    bias(biases.mlp, "mlp.gate_proj", wide, &i.gate_up_biases);
    bias(biases.mlp, "mlp.up_proj", wide, &i.gate_up_biases);
    i.down = {matrix("mlp.down_proj", width, wide)};
    bias(biases.mlp, "mlp.down_proj", width, &i.down_biases);
    indices.push_back(i);
  }
  parameters.StartSegment();
  final_norm_ = parameters.Add("model.norm.weight", {width}, false);
  head_ = AddHead("lm_head.weight", embedding_);
  AllocateParameters();
  for (const Indices& i : indices) {
    layers_.push_back({i.attention_norm, i.mlp_norm, Linear(&parameters, i.qkv, i.qkv_biases),
                       Linear(&parameters, i.attention_out, i.attention_out_biases),
                       Linear(&parameters, i.gate_up, i.gate_up_biases),
                       Linear(&parameters, i.down, i.down_biases)});
  }
  if (seed) {
    const auto into_residual = [](const std::string& name) {
      return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    };
    InitializeWeights(*seed, config.num_layers, into_residual, &parameters);
  }
}

RopeRows Llama::RowsOf(const DeviceInput& input) {
  return rope_.RowsOf(input.positions_n, input.host_positions_n, input.spans.starts);
}

void Llama::ForwardAttention(size_t index, const RopeRows& rope, const Attend& attend, at::Tensor& normed_nd,
                             LayerViews& views, at::Tensor& update_nd) {
  const Layer& layer = layers_[index];
  at::Tensor middle_rstd = views.middle_statistics_sn[0];
  layer.qkv.Forward(normed_nd, views.qkv);
  ApplyRope(numerics(), rope, ShapeOf(normed_nd.size(0), index), /*backward=*/false, views.qkv);
  attend(index, views);
  layer.attention_out.Forward(views.attention, update_nd);
  AddRmsNorm(numerics(), views.input_nd, update_nd, Value(layer.mlp_norm), config().rms_norm_eps,
             views.middle_nd, normed_nd, middle_rstd);
}

void Llama::ForwardAgain(size_t index, const DeviceInput& input, const RopeRows& rope, LayerViews& views,
                         BackwardScratch& scratch) {
  if (KeepsMlp(index)) return;
  const Layer& layer = layers_[index];
  if (KeepsAttention(index)) {
    RmsNormAgain(numerics(), views.middle_nd, views.middle_statistics_sn[0], Value(layer.mlp_norm),
                 scratch.normed_nd);
  } else {
    RmsNormAgain(numerics(), views.input_nd, views.input_statistics_sn[0], Value(layer.attention_norm),
                 scratch.normed_nd);
    ForwardAttention(index, rope, PackedAttend(input), scratch.normed_nd, views, scratch.d_normed_nd);
  }
  layer.gate_up.Forward(scratch.normed_nd, views.mlp_nf);
}

at::Tensor Llama::Forward(const DeviceInput& input, bool keep, const Attend& attend) {
  const int64_t num_tokens = input.num_tokens();
  const double epsilon = config().rms_norm_eps;
  const RopeRows rope = RowsOf(input);
  auto [normed, update, activation, unused] = NewForwardScratch(num_tokens);
  at::Tensor stream = ViewsOf(0, num_tokens).input_nd, pending;
  Embed(Value(embedding_), input.tokens_n, stream);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    LayerViews views = ViewsOf(keep ? i : 0, num_tokens);
    at::Tensor input_rstd = views.input_statistics_sn[0];
    AddRmsNorm(numerics(), stream, pending, Value(layer.attention_norm), epsilon, views.input_nd, normed,
               input_rstd);
    ForwardAttention(i, rope, attend, normed, views, update);
    layer.gate_up.Forward(normed, views.mlp_nf);
    Swiglu(numerics(), views.mlp_nf, activation);
    layer.down.Forward(activation, update);
    if (keep) PutAway(i, views);
    stream = views.middle_nd;
    pending = update;
  }
  at::Tensor output = OutputOf(num_tokens), output_rstd = OutputStatisticsOf(num_tokens)[0];
  AddRmsNorm(numerics(), stream, pending, Value(final_norm_), epsilon, output, normed, output_rstd);
  return normed;
}

void Llama::Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) {
  const int64_t num_tokens = input.num_tokens();
  const AttentionShape shape = ShapeOf(num_tokens, 0);
  const RopeRows rope = RowsOf(input);
  BackwardScratch scratch = NewBackwardScratch(num_tokens);
  const auto norm_backward = [&](const at::Tensor& d_out, const at::Tensor& x,
                                 const at::Tensor& statistics_sn, size_t weight) {
    at::Tensor d_weight = Gradient(weight);
    RmsNormBackward(numerics(), d_out, x, statistics_sn[0], Value(weight), scratch.d_stream_nd, d_weight);
  };
  norm_backward(d_hidden_nd, OutputOf(num_tokens), OutputStatisticsOf(num_tokens), final_norm_);
  at::Tensor unwanted;
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    LayerViews views = BringBack(i, num_tokens);
    // Below the lowest adapter nothing is trained, so no gradient goes there.
    const bool below_qkv = trains_base() || i > 0, below_attention = below_qkv || layer.qkv.trains(),
               below_mlp = below_attention || layer.attention_out.trains(),
               below_down = below_mlp || layer.gate_up.trains();

    ForwardAgain(i, input, rope, views, scratch);
    RefreshShort(scratch);
    Swiglu(numerics(), views.mlp_nf, scratch.activation_nf);
    layer.down.Backward(scratch.d_short_nd, scratch.activation_nf,
                        below_down ? scratch.d_activation_nf : unwanted);
    if (!below_down) return;
    SwigluBackward(numerics(), scratch.d_activation_nf, views.mlp_nf);
    RmsNormAgain(numerics(), views.middle_nd, views.middle_statistics_sn[0], Value(layer.mlp_norm),
                 scratch.normed_nd);
    layer.gate_up.Backward(views.mlp_nf, scratch.normed_nd, below_mlp ? scratch.d_normed_nd : unwanted);
    if (!below_mlp) return;
    norm_backward(scratch.d_normed_nd, views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);

    RefreshShort(scratch);
    layer.attention_out.Backward(scratch.d_short_nd, views.attention,
                                 below_attention ? scratch.d_attention : unwanted);
    if (!below_attention) return;
    if (numerics().emulated()) RoundInto(numerics(), scratch.d_attention, scratch.d_attention);
    PackedAttentionBackward(numerics(), ShapeOf(num_tokens, i), scratch.d_attention, views.qkv,
                            views.attention, views.lse_hn, input.spans, scratch.d_qkv);
    ApplyRope(numerics(), rope, shape, /*backward=*/true, scratch.d_qkv);
    RmsNormAgain(numerics(), views.input_nd, views.input_statistics_sn[0], Value(layer.attention_norm),
                 scratch.normed_nd);
    layer.qkv.Backward(scratch.d_qkv, scratch.normed_nd, below_qkv ? scratch.d_normed_nd : unwanted);
    if (!below_qkv) return;
    norm_backward(scratch.d_normed_nd, views.input_nd, views.input_statistics_sn, layer.attention_norm);
  }
  at::Tensor d_table = Gradient(embedding_);
  if (d_table.defined()) EmbedBackward(scratch.d_stream_nd, input.tokens_n, d_table);
}

}  // namespace trainwright
