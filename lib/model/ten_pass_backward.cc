#include "lib/model/ten_pass.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/activation/silu.h"
#include "lib/nn/embedding/embedding.h"

namespace trainwright {

void Ten::Pass::BeginBackward(const at::Tensor& d_hidden_nd) {
  FindStarts();
  normed_nd_ = model_.Get(Scratch::kNormed, rows_, width_);
  update_nd_ = model_.Get(Scratch::kUpdate, rows_, width_);
  d_stream_nd_ = model_.GetFp32(Scratch::kDStream, rows_, width_).zero_();
  d_short_nd_ =
      numerics_.precision == Precision::kFp32 ? d_stream_nd_ : model_.Get(Scratch::kDShort, rows_, width_);
  NormBackward(d_hidden_nd, model_.GetFp32(Scratch::kOutput, rows_, width_),
               model_.GetFp32(Scratch::kOutputStatistics, 2, rows_), model_.final_norm_, 0);
}

void Ten::Pass::Backward(size_t index, LayerViews& kept, bool below) {
  const TenLayer& layer = model_.layers_[index];
  TenViews views = TenViewsOf(model_.config(), kept);
  const TenEnds starts = StartsOf(index);
  const bool below_block = below || layer.cell.trains(),
             below_mlp = below_block || (model_.multi_scale_ && model_.multi_scale_->trains(index));
  MlpBackward(layer, views, below_mlp);
  if (!below_mlp) return;
  if (model_.multi_scale_) {
    model_.multi_scale_->Backward(index, *windows_, views.multi_scale, starts.windows,
                                  MultiScaleScratch(/*backward=*/true), d_short_nd_, below_block,
                                  d_stream_nd_);
    if (below_block && numerics_.precision != Precision::kFp32) {
      RoundInto(numerics_, d_stream_nd_, d_short_nd_);
    }
  }
  if (!below_block) return;
  NormAgain(views.input_nd, views.cell_statistics_sn, layer.cell_norm, normed_nd_);
  const at::Tensor d_normed_nd = cell_.Backward(layer.cell, d_short_nd_, normed_nd_, starts, views, below);
  if (below) NormBackward(d_normed_nd, views.input_nd, views.cell_statistics_sn, layer.cell_norm, 0);
}

void Ten::Pass::EmbedBackward() {
  at::Tensor d_tokens = model_.Gradient(model_.tokens_);
  if (d_tokens.defined()) trainwright::EmbedBackward(d_stream_nd_, input_.tokens_n, d_tokens);
}

void Ten::Pass::MlpBackward(const TenLayer& layer, const TenViews& views, bool below) {
  const bool below_down = below || layer.up.trains();
  const int64_t wide = model_.config().intermediate_size;
  ForSlices([&](int64_t begin, int64_t rows) {
    at::Tensor mlp_nf = views.mlp_nf.defined() ? views.mlp_nf.narrow(0, begin, rows)
                                               : model_.Get(Scratch::kMlp, rows, wide),
               normed_nd = normed_nd_.narrow(0, begin, rows),
               activation_nf = model_.Get(Scratch::kActivation, rows, wide), d_activation_nf, d_normed_nd;
    const at::Tensor middle_nd = views.middle_nd.narrow(0, begin, rows),
                     statistics_sn = views.mlp_statistics_sn.narrow(1, begin, rows);
    NormAgain(middle_nd, statistics_sn, layer.mlp_norm, normed_nd);
    if (!views.mlp_nf.defined()) layer.up.Forward(normed_nd, mlp_nf);
    Silu(numerics_, mlp_nf, activation_nf);
    if (below_down) d_activation_nf = model_.Get(Scratch::kDActivation, rows, wide);
    layer.down.Backward(d_short_nd_.narrow(0, begin, rows), activation_nf, d_activation_nf);
    if (!below_down) return;
    SiluBackward(numerics_, d_activation_nf, mlp_nf);
    if (below) d_normed_nd = model_.Get(Scratch::kDNormed, rows, width_);
    layer.up.Backward(mlp_nf, normed_nd, d_normed_nd);
    if (below) NormBackward(d_normed_nd, middle_nd, statistics_sn, layer.mlp_norm, begin);
  });
}

void Ten::Pass::NormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd,
                             const at::Tensor& statistics_sn, const TenNorm& norm, int64_t begin) {
  at::Tensor d_weight = model_.Gradient(norm.weight), d_bias = model_.Gradient(norm.bias),
             d_x_nd = d_stream_nd_.narrow(0, begin, x_nd.size(0)), d_rounded_nd;
  if (numerics_.precision != Precision::kFp32) d_rounded_nd = d_short_nd_.narrow(0, begin, x_nd.size(0));
  LayerNormBackward(numerics_, d_normed_nd, x_nd, StatisticsOf(statistics_sn), model_.Value(norm.weight),
                    d_x_nd, d_weight, d_bias, d_rounded_nd);
}

}  // namespace trainwright
