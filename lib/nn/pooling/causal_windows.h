/// Means of windows of rows, counted from the start of each span of a packed batch, and the way back up to
/// the rows: a row sees the last window that has ended with it or before it, and none where there is none
/// yet. So nothing of a window is seen before the window is complete.
///
/// Maths, t counted from 0 at the start of a span, s rows a window:
///   mean_j = (x_{js} + ... + x_{js+s-1}) / s,     out_t = y_{floor((t+1)/s) - 1}, zero for the index -1.
/// Backward: d x_t = d mean_{floor(t/s)} / s, zero in a window that is not complete; d y_j = the sum of
/// d out_t over the rows that see it.
///
/// A span may go on from rows of an earlier pass: then its open window begins with their sum, and its first
/// rows see what the last window before them gave. Neither gets a gradient.
///
/// Shape legend: N rows of a micro-batch, S spans, M windows that are complete, W columns.
///
/// Numerics: sums are fp32, in the order of rows; rows have the storage type. Determinism: the bits of a
/// window depend on its own rows alone: not on threads, nor on the other spans.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/attention/span_table.h"

namespace trainwright {

/// Where the windows of one length lie in a micro-batch.
struct CausalWindows {
  struct Window {
    int32_t begin = 0, end = 0;  ///< rows, without those of an earlier pass
    int32_t seen_end = 0;        ///< rows [end - 1, seen_end) see it
    int32_t span = 0;
  };
  /// Of a span, what is in no complete window.
  struct Edge {
    int32_t begin = 0, end = 0;  ///< rows of the span
    int32_t unseen_end = 0;      ///< rows [begin, unseen_end) see what came before them
    int32_t open = 0;            ///< rows [open, end) are of a window that stays open
    bool open_before = false;    ///< and so are rows of an earlier pass
    int64_t open_rows = 0;       ///< how many that window has, those of earlier passes among them
  };

  /// \param size rows a window, at least 1
  /// \param rows of the micro-batch; spans may be empty
  /// \param rows_before [S]: how many rows each span has had in earlier passes; empty: none
  /// \param device, pin as of SpanTable
  CausalWindows(int64_t size, const SpanTable& rows, const std::vector<int64_t>& rows_before = {},
                at::Device device = at::kCPU, bool pin = true);

  int64_t num_rows() const { return edges.back().end; }
  int64_t num_spans() const { return static_cast<int64_t>(edges.size()); }
  /// M.
  int64_t count() const { return static_cast<int64_t>(windows.size()); }

  int64_t size = 1;
  std::vector<Window> windows;  ///< [M], span after span
  std::vector<Edge> edges;      ///< [S]
  /// The complete windows as the rows of a scan: those of each span that has any are one.
  SpanTable spans;
  std::vector<int64_t> spans_with_windows;  ///< which those are
};

/// mean_mw = the means of the windows.
/// \param x_nw storage type [N, W], rounded; rows contiguous
/// \param before_sw fp32 [S, W], contiguous: the sums of the windows that are open before each span's first
///     row; undefined: zeros
/// \param mean_mw storage type [M, W], contiguous, rounded; under emulation not, its reader rounds
/// \param after_sw fp32 [S, W], contiguous: likewise after its last row; undefined: not wanted. Other memory
///     than before_sw
void WindowMeans(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
                 at::Tensor& mean_mw, at::Tensor& after_sw);

/// Writes all of d_x_nw: rows that are in no complete window get zeros.
/// \param d_mean_mw storage type [M, W], contiguous
/// \param d_x_nw storage type [N, W], rows contiguous, rounded; under emulation not, its reader rounds
void WindowMeansBackward(const CausalWindows& windows, const at::Tensor& d_mean_mw, at::Tensor& d_x_nw);

/// out_nw = for each row that of y_mw which it sees.
/// \param y_mw storage type [M, W], contiguous, rounded
/// \param before_sw storage type [S, W], contiguous, rounded: what the rows see that come before the end of
///     their span's first window; undefined: zeros
/// \param out_nw storage type [N, W], contiguous
void SpreadWindows(const CausalWindows& windows, const at::Tensor& y_mw, const at::Tensor& before_sw,
                   at::Tensor& out_nw);

/// \param d_out_nw storage type [N, W], contiguous, rounded
/// \param d_y_mw storage type [M, W], contiguous, rounded; under emulation not, its reader rounds
void SpreadWindowsBackward(const CausalWindows& windows, const at::Tensor& d_out_nw, at::Tensor& d_y_mw);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too.
namespace on_device {

void WindowMeans(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& before_sw,
                 at::Tensor& mean_mw, at::Tensor& after_sw);
void WindowMeansBackward(const CausalWindows& windows, const at::Tensor& d_mean_mw, at::Tensor& d_x_nw);
void SpreadWindows(const CausalWindows& windows, const at::Tensor& y_mw, const at::Tensor& before_sw,
                   at::Tensor& out_nw);
void SpreadWindowsBackward(const CausalWindows& windows, const at::Tensor& d_out_nw, at::Tensor& d_y_mw);

}  // namespace on_device
}  // namespace trainwright
