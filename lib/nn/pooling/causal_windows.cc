#include "lib/nn/pooling/causal_windows.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

bool IsRows(const at::Tensor& tensor, at::ScalarType type, int64_t rows, int64_t width) {
  return tensor.dim() == 2 && tensor.scalar_type() == type && tensor.size(0) == rows &&
         tensor.size(1) == width && (tensor.stride(1) == 1 || width == 1);
}
bool IsContiguous(const at::Tensor& tensor, at::ScalarType type, int64_t rows, int64_t width) {
  return IsRows(tensor, type, rows, width) && tensor.is_contiguous();
}
bool IsNoneOr(const at::Tensor& tensor, at::ScalarType type, int64_t rows, int64_t width) {
  return !tensor.defined() || IsContiguous(tensor, type, rows, width);
}

template <typename Element>
const Element* DataOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<Element>() : nullptr;
}

/// Calls function.operator()<Element>() with the type of stored elements.
template <typename Function>
void WithElement(const at::Tensor& stored, const Function& function) {
  if (stored.scalar_type() == at::kBFloat16) {
    function.template operator()<at::BFloat16>();
  } else {
    function.template operator()<float>();
  }
}

/// sums += the rows [begin, end), in order.
template <typename Element>
void AddRows(const Element* x, int64_t stride, int64_t begin, int64_t end, int64_t width, float* sums) {
  for (int64_t row = begin; row < end; ++row) {
    const Element* values = x + row * stride;
    for (int64_t i = 0; i < width; ++i) sums[i] += static_cast<float>(values[i]);
  }
}

void StartSums(const float* before, int64_t width, std::vector<float>* sums) {
  if (before == nullptr) {
    std::fill(sums->begin(), sums->end(), 0.0f);
  } else {
    std::copy(before, before + width, sums->begin());
  }
}

template <typename Element>
void Means(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
           at::Tensor& mean_mw) {
  const int64_t width = x_nw.size(1), stride = x_nw.stride(0);
  const auto* x = x_nw.const_data_ptr<Element>();
  const float* before = cpu::DataOrNull(before_sw);
  auto* means = mean_mw.mutable_data_ptr<Element>();
  const auto size = static_cast<float>(windows.size);
  cpu::ParallelRows(windows.count(), windows.size * width, [&](int64_t first, int64_t last) {
    std::vector<float> sums(static_cast<size_t>(width));
    for (int64_t m = first; m < last; ++m) {
      const CausalWindows::Window& window = windows.windows[static_cast<size_t>(m)];
      const bool goes_on = before != nullptr && window.end - window.begin < windows.size;
      StartSums(goes_on ? before + window.span * width : nullptr, width, &sums);
      AddRows(x, stride, window.begin, window.end, width, sums.data());
      Element* mean = means + m * width;
      for (int64_t i = 0; i < width; ++i) {
        mean[i] = static_cast<Element>(sums[static_cast<size_t>(i)] / size);
      }
    }
  });
}

template <typename Element>
void OpenSums(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
              at::Tensor& after_sw) {
  const int64_t width = x_nw.size(1), stride = x_nw.stride(0);
  const auto* x = x_nw.const_data_ptr<Element>();
  const float* before = cpu::DataOrNull(before_sw);
  auto* after = after_sw.mutable_data_ptr<float>();
  cpu::ParallelRows(windows.num_spans(), windows.size * width, [&](int64_t first, int64_t last) {
    std::vector<float> sums(static_cast<size_t>(width));
    for (int64_t span = first; span < last; ++span) {
      const CausalWindows::Edge& edge = windows.edges[static_cast<size_t>(span)];
      const bool goes_on = before != nullptr && edge.open_before;
      StartSums(goes_on ? before + span * width : nullptr, width, &sums);
      AddRows(x, stride, edge.open, edge.end, width, sums.data());
      std::copy(sums.begin(), sums.end(), after + span * width);
    }
  });
}

template <typename Element>
void ShareMeans(const CausalWindows& windows, const at::Tensor& d_mean_mw, at::Tensor& d_x_nw) {
  const int64_t width = d_x_nw.size(1), stride = d_x_nw.stride(0);
  const auto* d_means = d_mean_mw.const_data_ptr<Element>();
  auto* d_x = d_x_nw.mutable_data_ptr<Element>();
  const auto size = static_cast<float>(windows.size);
  cpu::ParallelRows(windows.count(), windows.size * width, [&](int64_t first, int64_t last) {
    for (int64_t m = first; m < last; ++m) {
      const CausalWindows::Window& window = windows.windows[static_cast<size_t>(m)];
      const Element* d_mean = d_means + m * width;
      for (int64_t row = window.begin; row < window.end; ++row) {
        Element* values = d_x + row * stride;
        for (int64_t i = 0; i < width; ++i) {
          values[i] = static_cast<Element>(static_cast<float>(d_mean[i]) / size);
        }
      }
    }
  });
  for (const CausalWindows::Edge& edge : windows.edges) {
    for (int64_t row = edge.open; row < edge.end; ++row) {
      std::fill(d_x + row * stride, d_x + row * stride + width, Element(0));
    }
  }
}

template <typename Element>
void Spread(const CausalWindows& windows, const at::Tensor& y_mw, const at::Tensor& before_sw,
            at::Tensor& out_nw) {
  const int64_t width = out_nw.size(1);
  const auto *y = y_mw.const_data_ptr<Element>(), *before = DataOrNull<Element>(before_sw);
  auto* out = out_nw.mutable_data_ptr<Element>();
  cpu::ParallelRows(windows.count(), windows.size * width, [&](int64_t first, int64_t last) {
    for (int64_t m = first; m < last; ++m) {
      const CausalWindows::Window& window = windows.windows[static_cast<size_t>(m)];
      for (int64_t row = window.end - 1; row < window.seen_end; ++row) {
        std::copy(y + m * width, y + (m + 1) * width, out + row * width);
      }
    }
  });
  for (int64_t span = 0; span < windows.num_spans(); ++span) {
    const CausalWindows::Edge& edge = windows.edges[static_cast<size_t>(span)];
    for (int64_t row = edge.begin; row < edge.unseen_end; ++row) {
      if (before == nullptr) {
        std::fill(out + row * width, out + (row + 1) * width, Element(0));
      } else {
        std::copy(before + span * width, before + (span + 1) * width, out + row * width);
      }
    }
  }
}

template <typename Element>
void GatherSpread(const CausalWindows& windows, const at::Tensor& d_out_nw, at::Tensor& d_y_mw) {
  const int64_t width = d_out_nw.size(1);
  const auto* d_out = d_out_nw.const_data_ptr<Element>();
  auto* d_y = d_y_mw.mutable_data_ptr<Element>();
  cpu::ParallelRows(windows.count(), windows.size * width, [&](int64_t first, int64_t last) {
    std::vector<float> sums(static_cast<size_t>(width));
    for (int64_t m = first; m < last; ++m) {
      const CausalWindows::Window& window = windows.windows[static_cast<size_t>(m)];
      StartSums(nullptr, width, &sums);
      AddRows(d_out, width, window.end - 1, window.seen_end, width, sums.data());
      for (int64_t i = 0; i < width; ++i) {
        d_y[m * width + i] = static_cast<Element>(sums[static_cast<size_t>(i)]);
      }
    }
  });
}

}  // namespace

CausalWindows::CausalWindows(int64_t size_in, const SpanTable& rows, const std::vector<int64_t>& rows_before,
                             at::Device device, bool pin)
    : size(size_in) {
  const size_t count = rows.starts.size() - 1;
  TRAINWRIGHT_CHECK(size >= 1 && rows.starts.size() >= 2 &&
                    (rows_before.empty() || rows_before.size() == count));
  std::vector<int32_t> starts = {0};
  for (size_t span = 0; span < count; ++span) {
    const int64_t begin = rows.starts[span], end = rows.starts[span + 1];
    const int64_t seen = rows_before.empty() ? 0 : rows_before[span] % size;
    const int64_t complete = (seen + end - begin) / size;
    // Of window w of the span, the first of which has `seen` rows already: one past its last row.
    const auto end_of = [&](int64_t w) { return begin - seen + (w + 1) * size; };
    for (int64_t w = 0; w < complete; ++w) {
      windows.push_back({.begin = static_cast<int32_t>(std::max(begin, end_of(w) - size)),
                         .end = static_cast<int32_t>(end_of(w)),
                         .seen_end = static_cast<int32_t>(std::min(end_of(w + 1) - 1, end)),
                         .span = static_cast<int32_t>(span)});
    }
    const bool any = complete > 0;
    edges.push_back({.begin = static_cast<int32_t>(begin),
                     .end = static_cast<int32_t>(end),
                     .unseen_end = static_cast<int32_t>(any ? end_of(0) - 1 : end),
                     .open = static_cast<int32_t>(any ? end_of(complete - 1) : begin),
                     .open_before = !any && seen > 0,
                     .open_rows = (seen + end - begin) % size});
    if (!any) continue;
    starts.push_back(static_cast<int32_t>(windows.size()));
    spans_with_windows.push_back(static_cast<int64_t>(span));
  }
  spans = SpanTable(std::move(starts), device, pin);
}

void WindowMeans(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
                 at::Tensor& mean_mw, at::Tensor& after_sw) {
  const int64_t width = x_nw.size(1), num_spans = windows.num_spans();
  TRAINWRIGHT_CHECK(IsRows(x_nw, x_nw.scalar_type(), windows.num_rows(), width) &&
                    IsContiguous(mean_mw, x_nw.scalar_type(), windows.count(), width));
  TRAINWRIGHT_CHECK(IsNoneOr(before_sw, at::kFloat, num_spans, width) &&
                    IsNoneOr(after_sw, at::kFloat, num_spans, width));
  if (x_nw.is_meta()) return;  // nothing to compute
  if (!x_nw.is_cpu()) return on_device::WindowMeans(windows, x_nw, before_sw, mean_mw, after_sw);
  WithElement(x_nw, [&]<typename Element>() {
    Means<Element>(windows, x_nw, before_sw, mean_mw);
    if (after_sw.defined()) OpenSums<Element>(windows, x_nw, before_sw, after_sw);
  });
}

void WindowMeansBackward(const CausalWindows& windows, const at::Tensor& d_mean_mw, at::Tensor& d_x_nw) {
  const int64_t width = d_x_nw.size(1);
  TRAINWRIGHT_CHECK(IsRows(d_x_nw, d_x_nw.scalar_type(), windows.num_rows(), width) &&
                    IsContiguous(d_mean_mw, d_x_nw.scalar_type(), windows.count(), width));
  if (d_x_nw.is_meta()) return;
  if (!d_x_nw.is_cpu()) return on_device::WindowMeansBackward(windows, d_mean_mw, d_x_nw);
  WithElement(d_x_nw, [&]<typename Element>() { ShareMeans<Element>(windows, d_mean_mw, d_x_nw); });
}

void SpreadWindows(const CausalWindows& windows, const at::Tensor& y_mw, const at::Tensor& before_sw,
                   at::Tensor& out_nw) {
  const int64_t width = out_nw.size(1);
  const at::ScalarType type = out_nw.scalar_type();
  TRAINWRIGHT_CHECK(IsContiguous(out_nw, type, windows.num_rows(), width) &&
                    IsContiguous(y_mw, type, windows.count(), width) &&
                    IsNoneOr(before_sw, type, windows.num_spans(), width));
  if (out_nw.is_meta()) return;
  if (!out_nw.is_cpu()) return on_device::SpreadWindows(windows, y_mw, before_sw, out_nw);
  WithElement(out_nw, [&]<typename Element>() { Spread<Element>(windows, y_mw, before_sw, out_nw); });
}

void SpreadWindowsBackward(const CausalWindows& windows, const at::Tensor& d_out_nw, at::Tensor& d_y_mw) {
  const int64_t width = d_out_nw.size(1);
  TRAINWRIGHT_CHECK(IsContiguous(d_out_nw, d_out_nw.scalar_type(), windows.num_rows(), width) &&
                    IsContiguous(d_y_mw, d_out_nw.scalar_type(), windows.count(), width));
  if (d_out_nw.is_meta()) return;
  if (!d_out_nw.is_cpu()) return on_device::SpreadWindowsBackward(windows, d_out_nw, d_y_mw);
  WithElement(d_out_nw, [&]<typename Element>() { GatherSpread<Element>(windows, d_out_nw, d_y_mw); });
}

}  // namespace trainwright
