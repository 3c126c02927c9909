#include "lib/model/gelu_transformer.h"

#include <limits>

#include "lib/base/error.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/linear/gelu_mlp.h"

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
  TRAINWRIGHT_CHECK(config.activation != Activation::kSwiglu && config.num_kv_heads == config.num_heads &&
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

Linear GeluTransformer::LinearOf(const Pair& projection, bool fp8) {
  const auto biases = projection.bias ? std::vector<size_t>{*projection.bias} : std::vector<size_t>();
  return Linear(&parameters(), {projection.weight}, biases, fp8);
}

class GeluTransformer::Pass final : public LayerPass {
 public:
  Pass(GeluTransformer* model, const DeviceInput& input, const Attend& attend)
      : model_(*model),
        numerics_(model->numerics()),
        parallel_(model->config().parallel_residual),
        epsilon_(model->config().rms_norm_eps),
        input_(input),
        attend_(attend) {
    if (model_.parts_.rope) {
      rope_ = model_.parts_.rope->RowsOf(input.positions_n, input.host_positions_n, input.spans.starts,
                                         input.spans.bound);
    }
  }

  void Embed(at::Tensor& stream_nd) override {
    const Parts& parts = model_.parts_;
    forward_ = model_.NewForwardScratch(input_.num_tokens());
    trainwright::Embed(numerics_, model_.Value(parts.tokens), input_.tokens_n, stream_nd);
    if (parts.positions) {
      AddEmbedding(numerics_, model_.Value(*parts.positions), input_.positions_n, stream_nd);
    }
  }

  void Forward(size_t index, LayerViews& kept, Residual& residual) override {
    const Layer& layer = model_.parts_.layers[index];
    Views views = Named(kept);
    LayerNormStatistics input_statistics = StatisticsOf(views.input_statistics_sn),
                        middle_statistics = StatisticsOf(views.middle_statistics_sn);
    at::Tensor& normed_nd = forward_.normed_nd;
    AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias,
                 model_.WeightsOf(layer.attention_norm), epsilon_, views.input_nd, normed_nd,
                 input_statistics);
    ForwardAttention(index, normed_nd, views);
    HandOver(views, kept);
    at::Tensor attended = parallel_ ? forward_.parallel_update_nd : forward_.update_nd;
    if (parallel_) {
      layer.attention_out.Forward(views.attention, attended);
      AddLayerNorm(numerics_, views.input_nd, {}, {}, model_.WeightsOf(layer.mlp_norm), epsilon_,
                   views.middle_nd, normed_nd, middle_statistics);
    } else {
      layer.attention_out.ForwardWithoutBias(views.attention, attended);
      AddLayerNorm(numerics_, views.input_nd, attended, layer.attention_out.bias(),
                   model_.WeightsOf(layer.mlp_norm), epsilon_, views.middle_nd, normed_nd, middle_statistics);
    }
    at::Tensor& activation_nf = views.activation_nf.defined() ? views.activation_nf : forward_.activation_nf;
    MlpOf(layer).Forward(normed_nd, views.mlp_nf, activation_nf);
    layer.down.ForwardWithoutBias(activation_nf, forward_.update_nd);
    if (parallel_) forward_.update_nd.add_(attended);
    residual = {parallel_ ? views.input_nd : views.middle_nd, forward_.update_nd, layer.down.bias()};
  }

  at::Tensor Finish(const Residual& residual) override {
    at::Tensor output = model_.OutputOf(input_.num_tokens());
    LayerNormStatistics statistics = StatisticsOf(model_.OutputStatisticsOf(input_.num_tokens()));
    AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias,
                 model_.WeightsOf(model_.parts_.final_norm), epsilon_, output, forward_.normed_nd,
                 statistics);
    return forward_.normed_nd;
  }

  void BeginBackward(const at::Tensor& d_hidden_nd) override {
    const int64_t num_tokens = input_.num_tokens();
    backward_ = model_.NewBackwardScratch(num_tokens);
    NormBackward(d_hidden_nd, model_.OutputOf(num_tokens), model_.OutputStatisticsOf(num_tokens),
                 model_.parts_.final_norm);
  }

  void ForwardAgain(size_t index, LayerViews& kept) override {
    if (model_.KeepsMlp(index)) return;
    const Layer& layer = model_.parts_.layers[index];
    const bool keeps_attention = model_.KeepsAttention(index);
    Views views = Named(kept);
    LayerNormStatistics middle_statistics = StatisticsOf(views.middle_statistics_sn);
    if (!keeps_attention) {
      NormAgain(views.input_nd, views.input_statistics_sn, layer.attention_norm);
      ForwardAttention(index, backward_.normed_nd, views);
      HandOver(views, kept);
    }
    if (keeps_attention || parallel_) {
      NormAgain(parallel_ ? views.input_nd : views.middle_nd, views.middle_statistics_sn, layer.mlp_norm);
    } else {
      layer.attention_out.ForwardWithoutBias(views.attention, backward_.d_normed_nd);
      AddLayerNorm(numerics_, views.input_nd, backward_.d_normed_nd, layer.attention_out.bias(),
                   model_.WeightsOf(layer.mlp_norm), epsilon_, views.middle_nd, backward_.normed_nd,
                   middle_statistics);
    }
    MlpOf(layer).KeptAgain(backward_.normed_nd, views.mlp_nf);
  }

  void Backward(size_t index, LayerViews& kept, bool below) override {
    const Layer& layer = model_.parts_.layers[index];
    Views views = Named(kept);
    // In a parallel layer the MLP does not lie above attention.
    const bool below_attention = below || layer.qkv.trains(),
               below_mlp = parallel_ ? below : below_attention || layer.attention_out.trains();
    if (parallel_)
      AttentionOutBackward(layer, views, below_attention);  // the norms below add to what it reads
    MlpBackward(layer, views, below_mlp);
    if (!parallel_) {
      if (!below_mlp) return;
      AttentionOutBackward(layer, views, below_attention);
    }
    if (below_attention) AttentionBackward(index, views, below);
  }

  void EmbedBackward() override {
    at::Tensor d_tokens = model_.Gradient(model_.parts_.tokens),
               d_positions = model_.Gradient(model_.parts_.positions);
    if (d_tokens.defined()) trainwright::EmbedBackward(backward_.d_stream_nd, input_.tokens_n, d_tokens);
    if (d_positions.defined())
      trainwright::EmbedBackward(backward_.d_stream_nd, input_.positions_n, d_positions);
  }

 private:
  GeluMlp MlpOf(const Layer& layer) const {
    return GeluMlp(numerics_, model_.gelu_kind(), layer.up, layer.down);
  }
  /// A layer's qkv, attention and lse_hn.
  /// \param normed_nd the normalised input
  void ForwardAttention(size_t index, const at::Tensor& normed_nd, Views& views) {
    model_.parts_.layers[index].qkv.Forward(normed_nd, views.qkv);
    if (model_.parts_.rope) {
      ApplyRope(numerics_, rope_, model_.ShapeOf(normed_nd.size(0), index), /*backward=*/false, views.qkv);
    } else if (numerics_.emulated() && !model_.config().biases.qkv) {
      RoundInto(numerics_, views.qkv, views.qkv);
    }
    attend_(index, views);
  }

  void MlpBackward(const Layer& layer, Views& views, bool below) {
    at::Tensor unwanted;
    const GeluMlp mlp = MlpOf(layer);
    const bool below_down = below || layer.up.trains();
    if (!views.activation_nf.defined()) {
      views.activation_nf = backward_.activation_nf;
      mlp.ActivationAgain(views.mlp_nf, views.activation_nf);
    }
    const at::Tensor d_pre_nf = mlp.BackwardDown(backward_.d_short_nd, views.activation_nf, views.mlp_nf,
                                                 backward_.d_activation_nf, below_down);
    if (!below_down) return;
    const at::Tensor& mlp_input = parallel_ ? views.input_nd : views.middle_nd;
    NormAgain(mlp_input, views.middle_statistics_sn, layer.mlp_norm);
    mlp.BackwardUp(d_pre_nf, backward_.normed_nd, below ? backward_.d_normed_nd : unwanted);
    if (below) NormBackward(backward_.d_normed_nd, mlp_input, views.middle_statistics_sn, layer.mlp_norm);
  }

  void AttentionOutBackward(const Layer& layer, const Views& views, bool below) {
    at::Tensor unwanted;
    layer.attention_out.Backward(backward_.d_short_nd, views.attention,
                                 below ? backward_.d_attention : unwanted);
  }

  void AttentionBackward(size_t index, Views& views, bool below) {
    const Layer& layer = model_.parts_.layers[index];
    const AttentionShape shape = model_.ShapeOf(input_.num_tokens(), index, input_.mask);
    at::Tensor unwanted;
    if (numerics_.emulated()) RoundInto(numerics_, backward_.d_attention, backward_.d_attention);
    PackedAttentionBackward(numerics_, shape, backward_.d_attention, views.qkv, views.attention, views.lse_hn,
                            input_.spans, backward_.d_qkv, model_.parts_.rope ? &rope_ : nullptr);
    if (!model_.parts_.rope && numerics_.emulated()) {
      RoundInto(numerics_, backward_.d_qkv, backward_.d_qkv);
    }
    NormAgain(views.input_nd, views.input_statistics_sn, layer.attention_norm);
    layer.qkv.Backward(backward_.d_qkv, backward_.normed_nd, below ? backward_.d_normed_nd : unwanted);
    if (!below) return;
    NormBackward(backward_.d_normed_nd, views.input_nd, views.input_statistics_sn, layer.attention_norm);
  }

  /// Normalises again, into the scratch.
  void NormAgain(const at::Tensor& x, const at::Tensor& statistics_sn, const Pair& norm) {
    LayerNormAgain(numerics_, x, StatisticsOf(statistics_sn), model_.WeightsOf(norm), backward_.normed_nd);
  }
  /// Adds to the gradient of the stream, and rounds it for the next products.
  void NormBackward(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& statistics_sn,
                    const Pair& norm) {
    at::Tensor d_weight = model_.Gradient(norm.weight), d_bias = model_.Gradient(norm.bias);
    LayerNormBackward(numerics_, d_out, x, StatisticsOf(statistics_sn), model_.Value(norm.weight),
                      backward_.d_stream_nd, d_weight, d_bias, backward_.d_rounded_nd);
  }

  GeluTransformer& model_;
  const Numerics& numerics_;
  const bool parallel_;
  const double epsilon_;
  const DeviceInput& input_;
  const Attend attend_;
  RopeRows rope_;
  ForwardScratch forward_;
  BackwardScratch backward_;
};

std::unique_ptr<LayerPass> GeluTransformer::NewPass(const DeviceInput& input, const Attend& attend) {
  return std::make_unique<Pass>(this, input, attend);
}

}  // namespace trainwright
