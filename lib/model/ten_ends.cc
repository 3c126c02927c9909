#include "lib/model/ten_ends.h"

#include <ATen/ops/zeros.h>

#include <iterator>

namespace trainwright {
namespace {

/// Of the shapes of a state, for all spans.
TenEnds Zeros(const LayerState& like, int64_t spans, at::Device device) {
  const auto zeros = [&](const std::vector<int64_t>& shape) {
    return at::zeros(shape, at::TensorOptions().dtype(at::kFloat).device(device));
  };
  const int64_t channels = like.scan_z.numel();
  TenEnds ends;
  ends.scan_sz = zeros({spans, channels});
  if (like.conv_3z.defined()) ends.inputs_spz = zeros({spans, like.conv_3z.size(0), channels});
  if (!like.windows.empty()) ends.windows = {zeros({spans, channels}), zeros({spans, channels})};
  return ends;
}

}  // namespace

TenEnds StartsOf(const std::vector<const LayerStates*>& before, size_t layer, at::Device device) {
  TenEnds starts;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == nullptr) continue;
    const LayerState& state = (*before[i])[layer];
    if (!starts.scan_sz.defined()) starts = Zeros(state, std::ssize(before), device);
    const auto span = static_cast<int64_t>(i);
    starts.scan_sz[span].copy_(state.scan_z);
    if (state.conv_3z.defined()) starts.inputs_spz[span].copy_(state.conv_3z);
    int64_t column = 0;
    for (const WindowState& window : state.windows) {
      const int64_t columns = window.scan_z.numel();
      starts.windows.scan_sz[span].narrow(0, column, columns).copy_(window.scan_z);
      starts.windows.sum_sz[span].narrow(0, column, columns).copy_(window.sum_d);
      column += columns;
    }
  }
  return starts;
}

LayerState StateAfter(const TenFields& fields, const TenEnds& ends, int64_t span, int64_t rows,
                      const LayerState* before) {
  LayerState state;
  state.scan_z = ends.scan_sz[span].clone();
  if (ends.inputs_spz.defined()) state.conv_3z = ends.inputs_spz[span].clone();
  for (size_t i = 0; i < fields.windows.size(); ++i) {
    const int64_t columns = 2 * fields.window_eigenstates(), column = columns * static_cast<int64_t>(i);
    const int64_t seen = before != nullptr ? before->windows[i].seen : 0;
    state.windows.push_back({.scan_z = ends.windows.scan_sz[span].narrow(0, column, columns).clone(),
                             .sum_d = ends.windows.sum_sz[span].narrow(0, column, columns).clone(),
                             .seen = (seen + rows) % fields.windows[i]});
  }
  return state;
}

}  // namespace trainwright
