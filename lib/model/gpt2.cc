#include "lib/model/gpt2.h"

#include <string>

#include "lib/base/error.h"
#include "lib/model/initialize.h"
#include "lib/nn/bias.h"
#include "lib/nn/elementwise.h"
#include "lib/nn/embedding.h"

namespace trainwright {
namespace {

LayerNormStatistics StatisticsOf(const at::Tensor& statistics_sn) {
  return {statistics_sn[0], statistics_sn[1]};
}

}  // namespace

const ModelConfig& Gpt2::CheckedConfig(const ModelConfig& config, at::Device device) {
  RequirePositive({{"vocab_size", config.vocab_size},
                   {"n_embd", config.hidden_size},
                   {"n_inner", config.intermediate_size},
                   {"n_layer", config.num_layers},
                   {"n_head", config.num_heads},
                   {"n_positions", config.max_positions}});
  if (config.hidden_size % config.num_heads != 0) RefuseConfig("n_head", "must divide n_embd");
  TRAINWRIGHT_CHECK(config.family == ModelFamily::kGpt2 && config.activation != Activation::kSwiglu &&
                    config.num_kv_heads == config.num_heads &&
                    config.head_dim * config.num_heads == config.hidden_size);
  if (device.is_cuda()) {
    throw Error(ErrorCode::kDevice, "model", "the GPT-2 family runs on the CPU only so far", "",
                "use --device cpu, or a model of the Llama family");
  }
  return config;
}

Gpt2::Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device,
           std::optional<uint64_t> seed, const FineTuning& tuning)
    : Transformer(CheckedConfig(config, device), numerics, device,
                  {.norm_statistics = 2, .mlp_inner = config.intermediate_size}, tuning) {
  FlatParameters& parameters = this->parameters();
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const auto bias = [&](const std::string& name, int64_t size) -> std::optional<size_t> {
    if (config.bias) return parameters.Add(name + ".bias", {size}, false);
    parameters.AddZeros(name + ".bias", {size});
    return std::nullopt;
  };
  const auto norm = [&](const std::string& name) {
    const size_t weight = parameters.Add(name + ".weight", {width}, false);
    return Pair{weight, bias(name, width)};
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    const size_t weight = parameters.Add(name + ".weight", {rows, columns}, true);
    parameters[weight].transposed_in_files = true;
    return Pair{weight, bias(name, rows)};
  };
  struct Indices {
    Pair attention_norm, qkv, attention_out, mlp_norm, up, down;
  };
  std::vector<Indices> indices;
  tokens_ = parameters.Add("transformer.wte.weight", {config.vocab_size, width}, true);
  positions_ = parameters.Add("transformer.wpe.weight", {config.max_positions, width}, true);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    Indices i;
    i.attention_norm = norm(prefix + "ln_1");
    i.qkv = matrix(prefix + "attn.c_attn", 3 * width, width);
    i.attention_out = matrix(prefix + "attn.c_proj", width, width);
    i.mlp_norm = norm(prefix + "ln_2");
    i.up = matrix(prefix + "mlp.c_fc", wide, width);
    i.down = matrix(prefix + "mlp.c_proj", width, wide);
    indices.push_back(i);
  }
  final_norm_ = norm("transformer.ln_f");
  head_ =
      config.tie_embeddings ? tokens_ : parameters.Add("lm_head.weight", {config.vocab_size, width}, true);
  AllocateParameters();
  const auto projection = [&](const Pair& pair) {
    return Projection{Linear(&parameters, {pair.weight}), pair.bias};
  };
  for (const Indices& i : indices) {
    layers_.push_back({i.attention_norm, i.mlp_norm, projection(i.qkv), projection(i.attention_out),
                       projection(i.up), projection(i.down)});
  }
  if (seed) {
    InitializeWeights(
        *seed, config.num_layers, [](const std::string& name) { return name.ends_with(".c_proj.weight"); },
        &parameters);
  }
}

GeluKind Gpt2::gelu_kind() const {
  return config().activation == Activation::kGelu ? GeluKind::kErf : GeluKind::kTanh;
}

at::Tensor Gpt2::Forward(const DeviceInput& input, bool keep, const Attend& attend) {
  const int64_t num_tokens = input.num_tokens();
  const double epsilon = config().rms_norm_eps;
  auto [normed, update, activation] = NewForwardScratch(num_tokens);
  at::Tensor stream = ViewsOf(0, num_tokens).input_nd, pending, pending_bias;
  Embed(Value(tokens_), input.tokens_n, stream);
  AddEmbedding(Value(positions_), input.positions_n, stream);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    LayerViews views = ViewsOf(keep ? i : 0, num_tokens);
    LayerNormStatistics input_statistics = StatisticsOf(views.input_statistics_sn),
                        middle_statistics = StatisticsOf(views.middle_statistics_sn);
    AddLayerNorm(numerics(), stream, pending, pending_bias, Norm(layer.attention_norm), epsilon,
                 views.input_nd, normed, input_statistics);
    layer.qkv.linear.Forward(normed, views.qkv);
    AddBias(numerics(), Value(layer.qkv.bias), views.qkv);
    attend(i, views);
    layer.attention_out.linear.Forward(views.attention, update);
    AddLayerNorm(numerics(), views.input_nd, update, Value(layer.attention_out.bias), Norm(layer.mlp_norm),
                 epsilon, views.middle_nd, normed, middle_statistics);
    layer.up.linear.Forward(normed, views.mlp_nf);  // keeps it without its bias
    Gelu(numerics(), gelu_kind(), views.mlp_nf, Value(layer.up.bias), activation);
    layer.down.linear.Forward(activation, update);
    stream = views.middle_nd;
    pending = update;
    pending_bias = Value(layer.down.bias);
  }
  at::Tensor output = OutputOf(num_tokens);
  LayerNormStatistics statistics = StatisticsOf(OutputStatisticsOf(num_tokens));
  AddLayerNorm(numerics(), stream, pending, pending_bias, Norm(final_norm_), epsilon, output, normed,
               statistics);
  return normed;
}

void Gpt2::Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) {
  const int64_t num_tokens = input.num_tokens();
  const AttentionShape shape = ShapeOf(num_tokens);
  BackwardScratch scratch = NewBackwardScratch(num_tokens);
  const auto norm_backward = [&](const at::Tensor& d_out, const at::Tensor& x,
                                 const at::Tensor& statistics_sn, const Pair& norm) {
    at::Tensor d_weight = Gradient(norm.weight), d_bias = Gradient(norm.bias);
    LayerNormBackward(numerics(), d_out, x, StatisticsOf(statistics_sn), Value(norm.weight),
                      scratch.d_stream_nd, d_weight, d_bias);
  };
  const auto linear_backward = [&](const Projection& projection, const at::Tensor& dy, const at::Tensor& x,
                                   at::Tensor& d_x) {
    projection.linear.Backward(dy, x, d_x);
    at::Tensor d_bias = Gradient(projection.bias);
    if (d_bias.defined()) AccumulateBiasGradient(numerics(), dy, d_bias);
  };
  norm_backward(d_hidden_nd, OutputOf(num_tokens), OutputStatisticsOf(num_tokens), final_norm_);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    LayerViews views = ViewsOf(i, num_tokens);

    RefreshShort(scratch);
    Gelu(numerics(), gelu_kind(), views.mlp_nf, Value(layer.up.bias), scratch.activation_nf);
    linear_backward(layer.down, scratch.d_short_nd, scratch.activation_nf, scratch.d_activation_nf);
    GeluBackward(numerics(), gelu_kind(), scratch.d_activation_nf, Value(layer.up.bias), views.mlp_nf);
    LayerNormAgain(numerics(), views.middle_nd, StatisticsOf(views.middle_statistics_sn),
                   Norm(layer.mlp_norm), scratch.normed_nd);
    linear_backward(layer.up, views.mlp_nf, scratch.normed_nd, scratch.d_normed_nd);
    norm_backward(scratch.d_normed_nd, views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);

    RefreshShort(scratch);
    linear_backward(layer.attention_out, scratch.d_short_nd, views.attention, scratch.d_attention);
    if (numerics().emulated()) RoundInto(numerics(), scratch.d_attention, scratch.d_attention);
    PackedAttentionBackward(numerics(), shape, scratch.d_attention, views.qkv, views.attention, views.lse_hn,
                            input.spans, scratch.d_qkv);
    if (numerics().emulated()) RoundInto(numerics(), scratch.d_qkv, scratch.d_qkv);
    LayerNormAgain(numerics(), views.input_nd, StatisticsOf(views.input_statistics_sn),
                   Norm(layer.attention_norm), scratch.normed_nd);
    linear_backward(layer.qkv, scratch.d_qkv, scratch.normed_nd, scratch.d_normed_nd);
    norm_backward(scratch.d_normed_nd, views.input_nd, views.input_statistics_sn, layer.attention_norm);
  }
  at::Tensor d_tokens = Gradient(tokens_), d_positions = Gradient(positions_);
  if (d_tokens.defined()) EmbedBackward(scratch.d_stream_nd, input.tokens_n, d_tokens);
  if (d_positions.defined()) EmbedBackward(scratch.d_stream_nd, input.positions_n, d_positions);
}

}  // namespace trainwright
