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
  TRAINWRIGHT_CHECK(config.activation == Activation::kSwiglu && config.rope.partial_rotary_factor == 1.0 &&
                    !biases.norm &&
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
  AddHead("lm_head.weight", embedding_);
  AllocateParameters();
  for (const Indices& i : indices) {
    layers_.push_back({i.attention_norm, i.mlp_norm, Linear(&parameters, i.qkv, i.qkv_biases),
                       Linear(&parameters, i.attention_out, i.attention_out_biases),
                       Linear(&parameters, i.gate_up, i.gate_up_biases, numerics.fp8.mlp),
                       Linear(&parameters, i.down, i.down_biases, numerics.fp8.mlp)});
  }
  if (seed) {
    const auto into_residual = [](const std::string& name) {
      return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    };
    InitializeWeights(*seed, config, into_residual, &parameters);
  }
}

class Llama::Pass final : public LayerPass {
 public:
  Pass(Llama* model, const DeviceInput& input, const Attend& attend)
      : model_(*model),
        numerics_(model->numerics()),
        input_(input),
        attend_(attend),
        rope_(model->rope_.RowsOf(input.positions_n, input.host_positions_n, input.spans.starts,
                                  input.spans.bound)) {}

  void Embed(at::Tensor& stream_nd) override {
    forward_ = model_.NewForwardScratch(input_.num_tokens());
    trainwright::Embed(numerics_, model_.Value(model_.embedding_), input_.tokens_n, stream_nd);
  }

  void Forward(size_t index, LayerViews& kept, Residual& residual) override {
    const Layer& layer = model_.layers_[index];
    Views views = Named(kept);
    at::Tensor input_rstd = views.input_statistics_sn[0];
    AddRmsNorm(numerics_, residual.stream_nd, residual.update_nd, model_.Value(layer.attention_norm),
               model_.config().rms_norm_eps, views.input_nd, forward_.normed_nd, input_rstd);
    ForwardAttention(index, forward_.normed_nd, views, forward_.update_nd);
    HandOver(views, kept);
    layer.gate_up.Forward(forward_.normed_nd, views.mlp_nf);
    at::Tensor& activation_nf = views.activation_nf.defined() ? views.activation_nf : forward_.activation_nf;
    Swiglu(numerics_, views.mlp_nf, activation_nf);
    layer.down.Forward(activation_nf, forward_.update_nd);
    residual = {.stream_nd = views.middle_nd, .update_nd = forward_.update_nd};
  }

  at::Tensor Finish(const Residual& residual) override {
    at::Tensor output = model_.OutputOf(input_.num_tokens()),
               output_rstd = model_.OutputStatisticsOf(input_.num_tokens())[0];
    AddRmsNorm(numerics_, residual.stream_nd, residual.update_nd, model_.Value(model_.final_norm_),
               model_.config().rms_norm_eps, output, forward_.normed_nd, output_rstd);
    return forward_.normed_nd;
  }

  void BeginBackward(const at::Tensor& d_hidden_nd) override {
    const int64_t num_tokens = input_.num_tokens();
    backward_ = model_.NewBackwardScratch(num_tokens);
    NormBackward(d_hidden_nd, model_.OutputOf(num_tokens), model_.OutputStatisticsOf(num_tokens),
                 model_.final_norm_);
  }

  void ForwardAgain(size_t index, LayerViews& kept) override {
    if (model_.KeepsMlp(index)) return;
    const Layer& layer = model_.layers_[index];
    Views views = Named(kept);
    if (model_.KeepsAttention(index)) {
      NormAgain(views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);
    } else {
      NormAgain(views.input_nd, views.input_statistics_sn, layer.attention_norm);
      ForwardAttention(index, backward_.normed_nd, views, backward_.d_normed_nd);
      HandOver(views, kept);
    }
    layer.gate_up.Forward(backward_.normed_nd, views.mlp_nf);
  }

  void Backward(size_t index, LayerViews& kept, bool below) override {
    const Layer& layer = model_.layers_[index];
    Views views = Named(kept);
    const bool below_attention = below || layer.qkv.trains(),
               below_mlp = below_attention || layer.attention_out.trains(),
               below_down = below_mlp || layer.gate_up.trains();
    at::Tensor unwanted;

    if (!views.activation_nf.defined()) {
      views.activation_nf = backward_.activation_nf;
      Swiglu(numerics_, views.mlp_nf, views.activation_nf);
    }
    layer.down.Backward(backward_.d_short_nd, views.activation_nf,
                        below_down ? backward_.d_activation_nf : unwanted);
    if (!below_down) return;
    SwigluBackward(numerics_, backward_.d_activation_nf, views.mlp_nf);
    NormAgain(views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);
    layer.gate_up.Backward(views.mlp_nf, backward_.normed_nd, below_mlp ? backward_.d_normed_nd : unwanted);
    if (!below_mlp) return;
    NormBackward(backward_.d_normed_nd, views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);

    layer.attention_out.Backward(backward_.d_short_nd, views.attention,
                                 below_attention ? backward_.d_attention : unwanted);
    if (!below_attention) return;
    if (numerics_.emulated()) RoundInto(numerics_, backward_.d_attention, backward_.d_attention);
    const AttentionShape shape = model_.ShapeOf(input_.num_tokens(), index, input_.mask);
    PackedAttentionBackward(numerics_, shape, backward_.d_attention, views.qkv, views.attention, views.lse_hn,
                            input_.spans, backward_.d_qkv, &rope_);
    NormAgain(views.input_nd, views.input_statistics_sn, layer.attention_norm);
    layer.qkv.Backward(backward_.d_qkv, backward_.normed_nd, below ? backward_.d_normed_nd : unwanted);
    if (!below) return;
    NormBackward(backward_.d_normed_nd, views.input_nd, views.input_statistics_sn, layer.attention_norm);
  }

  void EmbedBackward() override {
    at::Tensor d_table = model_.Gradient(model_.embedding_);
    if (d_table.defined()) trainwright::EmbedBackward(backward_.d_stream_nd, input_.tokens_n, d_table);
  }

 private:
  /// The first half of a layer's forward pass, to its middle.
  /// \param normed_nd the normalised input, becomes the normalised middle
  /// \param update_nd scratch
  void ForwardAttention(size_t index, at::Tensor& normed_nd, Views& views, at::Tensor& update_nd) {
    const Layer& layer = model_.layers_[index];
    at::Tensor middle_rstd = views.middle_statistics_sn[0];
    layer.qkv.Forward(normed_nd, views.qkv);
    ApplyRope(numerics_, rope_, model_.ShapeOf(normed_nd.size(0), index), /*backward=*/false, views.qkv);
    attend_(index, views);
    layer.attention_out.Forward(views.attention, update_nd);
    AddRmsNorm(numerics_, views.input_nd, update_nd, model_.Value(layer.mlp_norm),
               model_.config().rms_norm_eps, views.middle_nd, normed_nd, middle_rstd);
  }
  /// Normalises again, into the scratch.
  void NormAgain(const at::Tensor& x, const at::Tensor& statistics_sn, size_t weight) {
    RmsNormAgain(numerics_, x, statistics_sn[0], model_.Value(weight), backward_.normed_nd);
  }
  /// Adds to the gradient of the stream, and rounds it for the next products.
  void NormBackward(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& statistics_sn,
                    size_t weight) {
    at::Tensor d_weight = model_.Gradient(weight);
    RmsNormBackward(numerics_, d_out, x, statistics_sn[0], model_.Value(weight), backward_.d_stream_nd,
                    d_weight, backward_.d_rounded_nd);
  }

  Llama& model_;
  const Numerics& numerics_;
  const DeviceInput& input_;
  const Attend attend_;
  const RopeRows rope_;
  ForwardScratch forward_;
  BackwardScratch backward_;
};

std::unique_ptr<LayerPass> Llama::NewPass(const DeviceInput& input, const Attend& attend) {
  return std::make_unique<Pass>(this, input, attend);
}

}  // namespace trainwright
