#include "lib/model/ten_pass.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/nn/activation/sigmoid_gate.h"
#include "lib/nn/activation/silu.h"
#include "lib/nn/embedding/embedding.h"

namespace trainwright {
namespace {

/// What the MLP computes at once: its rows are four times as wide as those of the stream.
constexpr int64_t kSliceRows = 8192;

}  // namespace

Ten::Pass::Pass(Ten* model, const DeviceInput& input, std::vector<LayerStates*> states)
    : model_(*model),
      numerics_(model->numerics()),
      input_(input),
      states_(std::move(states)),
      rows_(input.num_tokens()),
      width_(model->config().hidden_size),
      epsilon_(model->config().rms_norm_eps),
      cell_(model, input) {}

TenMultiScale::Scratch Ten::Pass::MultiScaleScratch(bool backward) {
  TenMultiScale::Scratch scratch;
  scratch.normed_nd = normed_nd_;
  scratch.wide_nd = model_.Get(Scratch::kDOther, rows_, width_);
  if (backward) scratch.d_normed_nd = model_.Get(Scratch::kDNormed, rows_, width_);
  return scratch;
}

void Ten::Pass::Embed(at::Tensor& stream_nd) {
  if (states_.empty()) {
    TRAINWRIGHT_CHECK(!input_.continues || !model_.ends_.empty());
    model_.starts_ = input_.continues ? std::exchange(model_.ends_, {}) : LayerStates();
    model_.ends_.assign(model_.layers_.size(), LayerState());
  }
  FindStarts();
  normed_nd_ = model_.Get(Scratch::kNormed, rows_, width_);
  update_nd_ = model_.Get(Scratch::kUpdate, rows_, width_);
  trainwright::Embed(model_.Value(model_.tokens_), input_.tokens_n, stream_nd);
}

void Ten::Pass::Forward(size_t index, LayerViews& kept, Residual& residual) {
  const TenLayer& layer = model_.layers_[index];
  TenViews views = TenViewsOf(model_.config(), kept);
  // First of all: the layers may share the memory of their states.
  if (layer.cell.memory) views.memory_nz.copy_(below_nz_);
  const TenEnds starts = StartsOf(index);
  TenEnds ends = EndsToFill();
  LayerNormStatistics statistics = StatisticsOf(views.cell_statistics_sn);
  AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias,
               WeightsOf(layer.cell_norm), epsilon_, views.input_nd, normed_nd_, statistics);
  cell_.Forward(layer.cell, normed_nd_, starts, views, ends);
  ForwardMiddle(index, starts, views, &ends.windows);
  ForwardMlp(layer, views);
  Leave(index, ends);
  below_nz_ = views.c_nz;
  residual = {views.middle_nd, update_nd_, at::Tensor()};
}

at::Tensor Ten::Pass::Finish(const Residual& residual) {
  at::Tensor output_nd = model_.GetFp32(Scratch::kOutput, rows_, width_);
  LayerNormStatistics statistics = StatisticsOf(model_.GetFp32(Scratch::kOutputStatistics, 2, rows_));
  AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias,
               WeightsOf(model_.final_norm_), epsilon_, output_nd, normed_nd_, statistics);
  return normed_nd_;
}

void Ten::Pass::ForwardAgain(size_t index, LayerViews& kept) {
  const TenLayer& layer = model_.layers_[index];
  TenViews views = TenViewsOf(model_.config(), kept);
  const TenEnds starts = StartsOf(index);
  if (!model_.Keeps(Stays::kUnlessFull, index)) {
    TenEnds nowhere;
    NormAgain(views.input_nd, views.cell_statistics_sn, layer.cell_norm, normed_nd_);
    cell_.Forward(layer.cell, normed_nd_, starts, views, nowhere);
    ForwardMiddle(index, starts, views, nullptr);
  } else if (!model_.Keeps(Stays::kUnlessSelectiveOrFull, index)) {
    cell_.ScanInputAgain(layer.cell, starts, views);
  }
}

void Ten::Pass::FindStarts() {
  before_.assign(states_.begin(), states_.end());
  before_.resize(static_cast<size_t>(num_spans()), nullptr);
  if (states_.empty() && !model_.starts_.empty()) before_.front() = &model_.starts_;
  if (!model_.multi_scale_) return;
  // The longest window is a multiple of the others: where it stands, all stand.
  std::vector<int64_t> rows_before;
  for (const LayerStates* state : before_) {
    rows_before.push_back(state != nullptr ? state->front().windows.back().seen : 0);
  }
  windows_ = model_.multi_scale_->RowsOf(input_, rows_before);
}

TenEnds Ten::Pass::EndsToFill() {
  const int64_t spans = num_spans(), channels = 2 * model_.fields_.eigenstates,
                inputs = std::max<int64_t>(model_.fields_.convolution - 1, 0);
  TenEnds ends;
  ends.scan_sz = model_.GetFp32(Scratch::kLastStates, spans, channels);
  if (inputs > 0) {
    ends.inputs_spz =
        model_.GetFp32(Scratch::kLastInputs, spans * inputs, channels).view({spans, inputs, channels});
  }
  return ends;
}

void Ten::Pass::Leave(size_t layer, const TenEnds& ends) {
  const auto after = [&](size_t span) {
    const int64_t rows = input_.spans.starts[span + 1] - input_.spans.starts[span];
    const LayerState* before = before_[span] != nullptr ? &(*before_[span])[layer] : nullptr;
    return StateAfter(model_.fields_, ends, static_cast<int64_t>(span), rows, before);
  };
  if (states_.empty()) {
    model_.ends_[layer] = after(before_.size() - 1);
    return;
  }
  for (size_t span = 0; span < states_.size(); ++span) {
    if (states_[span] != nullptr) (*states_[span])[layer] = after(span);
  }
}

void Ten::Pass::ForwardMiddle(size_t index, const TenEnds& starts, TenViews& views,
                              TenMultiScale::Ends* ends) {
  const TenLayer& layer = model_.layers_[index];
  SigmoidGate(numerics_, views.gate_nd, layer.cell.gate.bias(), views.out_nd, update_nd_);
  Residual residual{.stream_nd = views.input_nd, .update_nd = update_nd_};
  if (model_.multi_scale_) {
    model_.multi_scale_->Forward(index, *windows_, views.multi_scale, starts.windows, ends,
                                 MultiScaleScratch(/*backward=*/false), residual);
  }
  LayerNormStatistics statistics = StatisticsOf(views.mlp_statistics_sn);
  AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias,
               WeightsOf(layer.mlp_norm), epsilon_, views.middle_nd, normed_nd_, statistics);
}

void Ten::Pass::ForwardMlp(const TenLayer& layer, const TenViews& views) {
  ForSlices([&](int64_t begin, int64_t rows) {
    at::Tensor activation_nf = model_.Get(Scratch::kActivation, rows, model_.config().intermediate_size),
               update_nd = update_nd_.narrow(0, begin, rows);
    at::Tensor mlp_nf = views.mlp_nf.defined() ? views.mlp_nf.narrow(0, begin, rows) : activation_nf;
    layer.up.Forward(normed_nd_.narrow(0, begin, rows), mlp_nf);
    Silu(numerics_, mlp_nf, activation_nf);
    layer.down.Forward(activation_nf, update_nd);
  });
}

void Ten::Pass::ForSlices(const std::function<void(int64_t begin, int64_t rows)>& function) const {
  // What adapters drop goes by the rows of the whole micro-batch.
  const int64_t slice = model_.parameters().adapters() != nullptr ? rows_ : kSliceRows;
  for (int64_t begin = 0; begin < rows_; begin += slice) function(begin, std::min(slice, rows_ - begin));
}

void Ten::Pass::NormAgain(const at::Tensor& x_nd, const at::Tensor& statistics_sn, const TenNorm& norm,
                          at::Tensor& normed_nd) const {
  LayerNormAgain(numerics_, x_nd, StatisticsOf(statistics_sn), WeightsOf(norm), normed_nd);
}

}  // namespace trainwright
