#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>

#include "lib/device/upload.h"
#include "lib/nn/pooling/causal_windows.h"

namespace trainwright::on_device {
namespace {

/// Calls set(row, source) for some of the rows.
using Sources = std::function<void(const std::function<void(int64_t row, int64_t source)>& set)>;

/// A number for each row: its source, or `none`.
at::Tensor Table(int64_t rows, int64_t none, at::Device device, const Sources& sources) {
  std::vector<int64_t> table(static_cast<size_t>(rows), none);
  sources([&](int64_t row, int64_t source) { table[static_cast<size_t>(row)] = source; });
  return Upload(at::tensor(table, at::TensorOptions().dtype(at::kLong)), device);
}

/// The rows of `tensor`, in fp32, and one of zeros.
at::Tensor WithZeros(const at::Tensor& tensor) {
  return at::cat({tensor.to(at::kFloat), at::zeros({1, tensor.size(1)}, tensor.options().dtype(at::kFloat))});
}

/// The sums of groups of `size` rows each, where rows that a group lacks are zeros.
/// \param row_of the row that is number i of a group, or -1
at::Tensor SumsOfGroups(const at::Tensor& x_nw, int64_t groups, int64_t size,
                        const std::function<int64_t(int64_t group, int64_t i)>& row_of) {
  const int64_t none = x_nw.size(0);
  const at::Tensor rows = Table(groups * size, none, x_nw.device(), [&](const auto& set) {
    for (int64_t at = 0; at < groups * size; ++at) {
      const int64_t row = row_of(at / size, at % size);
      if (row >= 0) set(at, row);
    }
  });
  return WithZeros(x_nw).index_select(0, rows).view({groups, size, x_nw.size(1)}).sum(1);
}

/// Of each group the row of before_sw that its sum begins with, or zeros.
at::Tensor StartsOfGroups(const at::Tensor& before_sw, int64_t groups,
                          const std::function<int64_t(int64_t group)>& span_of) {
  const at::Tensor spans = Table(groups, before_sw.size(0), before_sw.device(), [&](const auto& set) {
    for (int64_t group = 0; group < groups; ++group) {
      if (const int64_t span = span_of(group); span >= 0) set(group, span);
    }
  });
  return WithZeros(before_sw).index_select(0, spans);
}

const CausalWindows::Window& WindowAt(const CausalWindows& windows, int64_t m) {
  return windows.windows[static_cast<size_t>(m)];
}
const CausalWindows::Edge& EdgeAt(const CausalWindows& windows, int64_t span) {
  return windows.edges[static_cast<size_t>(span)];
}

}  // namespace

void WindowMeans(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
                 at::Tensor& mean_mw, at::Tensor& after_sw) {
  if (windows.count() > 0) {
    at::Tensor sums = SumsOfGroups(x_nw, windows.count(), windows.size, [&](int64_t m, int64_t i) {
      const CausalWindows::Window& window = WindowAt(windows, m);
      return window.begin + i < window.end ? window.begin + i : -1;
    });
    if (before_sw.defined()) {
      sums = StartsOfGroups(before_sw, windows.count(), [&](int64_t m) -> int64_t {
               const CausalWindows::Window& window = WindowAt(windows, m);
               return window.end - window.begin < windows.size ? window.span : -1;
             }).add(sums);
    }
    mean_mw.copy_(sums.div(static_cast<double>(windows.size)));
  }
  if (!after_sw.defined()) return;
  at::Tensor open = SumsOfGroups(x_nw, windows.num_spans(), windows.size, [&](int64_t span, int64_t i) {
    const CausalWindows::Edge& edge = EdgeAt(windows, span);
    return edge.open + i < edge.end ? edge.open + i : -1;
  });
  if (before_sw.defined()) {
    open = StartsOfGroups(before_sw, windows.num_spans(), [&](int64_t span) {
             return EdgeAt(windows, span).open_before ? span : -1;
           }).add(open);
  }
  after_sw.copy_(open);
}

void WindowMeansBackward(const CausalWindows& windows, const at::Tensor& d_mean_mw, at::Tensor& d_x_nw) {
  const at::Tensor window_of_row =
      Table(windows.num_rows(), windows.count(), d_x_nw.device(), [&](const auto& set) {
        for (int64_t m = 0; m < windows.count(); ++m) {
          for (int64_t row = WindowAt(windows, m).begin; row < WindowAt(windows, m).end; ++row) set(row, m);
        }
      });
  d_x_nw.copy_(WithZeros(d_mean_mw).div(static_cast<double>(windows.size)).index_select(0, window_of_row));
}

void SpreadWindows(const CausalWindows& windows, const at::Tensor& y_mw, const at::Tensor& before_sw,
                   at::Tensor& out_nw) {
  const at::Tensor before =
      before_sw.defined() ? before_sw : at::zeros({windows.num_spans(), y_mw.size(1)}, y_mw.options());
  const at::Tensor source_of_row = Table(windows.num_rows(), -1, out_nw.device(), [&](const auto& set) {
    for (int64_t m = 0; m < windows.count(); ++m) {
      const CausalWindows::Window& window = WindowAt(windows, m);
      for (int64_t row = window.end - 1; row < window.seen_end; ++row) set(row, m);
    }
    for (int64_t span = 0; span < windows.num_spans(); ++span) {
      const CausalWindows::Edge& edge = EdgeAt(windows, span);
      for (int64_t row = edge.begin; row < edge.unseen_end; ++row) set(row, windows.count() + span);
    }
  });
  out_nw.copy_(at::cat({y_mw, before}).index_select(0, source_of_row));
}

void SpreadWindowsBackward(const CausalWindows& windows, const at::Tensor& d_out_nw, at::Tensor& d_y_mw) {
  if (windows.count() == 0) return;
  d_y_mw.copy_(SumsOfGroups(d_out_nw, windows.count(), windows.size, [&](int64_t m, int64_t i) {
    const CausalWindows::Window& window = WindowAt(windows, m);
    return window.end - 1 + i < window.seen_end ? window.end - 1 + i : -1;
  }));
}

}  // namespace trainwright::on_device
