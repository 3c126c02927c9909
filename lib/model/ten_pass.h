/// The work of a TEN model's layers on one micro-batch: ten_pass.cc forward, ten_pass_backward.cc backward;
/// what is of the cell alone in ten_cell_pass.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

#include "lib/model/ten.h"
#include "lib/model/ten_cell_pass.h"
#include "lib/model/ten_ends.h"
#include "lib/nn/norm/layer_norm.h"

namespace trainwright {

class Ten::Pass final : public LayerPass {
 public:
  /// \param input outlives it
  /// \param states as ForwardFrom takes them; empty: a pass as LayerStack asks for it
  Pass(Ten* model, const DeviceInput& input, std::vector<LayerStates*> states);

  void Embed(at::Tensor& stream_nd) override;
  void Forward(size_t layer, LayerViews& views, Residual& residual) override;
  at::Tensor Finish(const Residual& residual) override;

  void BeginBackward(const at::Tensor& d_hidden_nd) override;
  void ForwardAgain(size_t layer, LayerViews& views) override;
  void Backward(size_t layer, LayerViews& views, bool below) override;
  void EmbedBackward() override;

 private:
  int64_t num_spans() const { return std::ssize(input_.spans.starts) - 1; }
  LayerNormWeights WeightsOf(const TenNorm& norm) const {
    return {model_.Value(norm.weight), model_.Value(norm.bias)};
  }
  static LayerNormStatistics StatisticsOf(const at::Tensor& statistics_sn) {
    return {statistics_sn[0], statistics_sn[1]};
  }

  /// Finds from what the spans go on, and where their windows lie.
  void FindStarts();
  TenEnds StartsOf(size_t layer) const { return trainwright::StartsOf(before_, layer, model_.device()); }
  /// Room for the ends of a layer.
  TenEnds EndsToFill();
  /// Writes the ends of a layer to the states of those spans that someone goes on from.
  void Leave(size_t layer, const TenEnds& ends);

  /// From both sides of the cell's gate to the stream that the MLP reads, and its norm in the scratch.
  /// \param ends of the multi-scale block's windows, or null
  void ForwardMiddle(size_t layer, const TenEnds& starts, TenViews& views, TenMultiScale::Ends* ends);
  /// Memory of the multi-scale block.
  TenMultiScale::Scratch MultiScaleScratch(bool backward);
  void ForwardMlp(const TenLayer& layer, const TenViews& views);
  void MlpBackward(const TenLayer& layer, const TenViews& views, bool below);
  /// Calls function(first row, rows) for one slice of the rows after the other.
  void ForSlices(const std::function<void(int64_t begin, int64_t rows)>& function) const;

  /// Normalises again.
  void NormAgain(const at::Tensor& x_nd, const at::Tensor& statistics_sn, const TenNorm& norm,
                 at::Tensor& normed_nd) const;
  /// Adds to the gradient of the stream, and rounds it for the next GEMMs.
  /// \param begin where the rows of x_nd begin in the stream
  void NormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& statistics_sn,
                    const TenNorm& norm, int64_t begin);

  Ten& model_;
  const Numerics& numerics_;
  const DeviceInput& input_;
  const std::vector<LayerStates*> states_;
  const int64_t rows_, width_;
  const double epsilon_;
  CellPass cell_;
  std::vector<const LayerStates*> before_;  ///< from what each span goes on; null: from nothing
  std::optional<TenMultiScale::Rows> windows_;
  at::Tensor normed_nd_, update_nd_;
  at::Tensor below_nz_;                  ///< the states of the layer that was computed last
  at::Tensor d_stream_nd_, d_short_nd_;  ///< the same tensor under fp32
};

}  // namespace trainwright
