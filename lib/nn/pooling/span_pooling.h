/// From the hidden states of packed texts to one vector a text, to unit length, and the way back.
///
/// Vectors, norms and their gradients are fp32 under every precision. A vector's bits depend on the rows of
/// its own text alone: not on threads, nor on the other texts of the micro-batch. Shape legend: N rows of a
/// micro-batch, D hidden size, T texts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/pooling/pooling.h"

namespace trainwright {

/// Where the texts lie, [T] each: rows of the micro-batch. Spans of texts do not overlap.
struct PooledSpans {
  std::vector<int32_t> begin, end;    ///< of text and instruction; none is empty
  std::vector<int32_t> first_pooled;  ///< in [begin, end)

  int64_t texts() const { return static_cast<int64_t>(begin.size()); }
};

/// out_td = the pooled rows of each text: weighted sums in the order of rows, divided by the sum of weights.
/// \param hidden_nd storage type [N, D], rounded, contiguous
/// \param out_td fp32 [T, D], contiguous
void PoolSpans(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd, at::Tensor& out_td);

/// The same into a new tensor.
at::Tensor Pooled(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd);

/// Writes all of d_hidden_nd: rows that are not pooled become zero.
/// \param d_out_td fp32 [T, D], contiguous
/// \param d_hidden_nd storage type [N, D], contiguous, rounded; under emulation not, its reader rounds
void PoolSpansBackward(Pooling pooling, const PooledSpans& spans, const at::Tensor& d_out_td,
                       at::Tensor& d_hidden_nd);

/// norm_t = the Euclidean norms of the rows of x_td, which are divided by them. A row of zeros stays as it
/// is.
/// \param x_td fp32 [T, D], contiguous
/// \param norm_t fp32 [T], contiguous
void NormalizeRows(at::Tensor& x_td, at::Tensor& norm_t);

/// From gradients of unit vectors to gradients of what they were: of a row of zeros zero.
/// \param unit_td, norm_t results of NormalizeRows
/// \param d_td fp32 [T, D], contiguous; overwritten
void NormalizeRowsBackward(const at::Tensor& unit_td, const at::Tensor& norm_t, at::Tensor& d_td);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too. Sums
/// are added up in another order.
namespace on_device {

void PoolSpans(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd, at::Tensor& out_td);
void PoolSpansBackward(Pooling pooling, const PooledSpans& spans, const at::Tensor& d_out_td,
                       at::Tensor& d_hidden_nd);
void NormalizeRows(at::Tensor& x_td, at::Tensor& norm_t);
void NormalizeRowsBackward(const at::Tensor& unit_td, const at::Tensor& norm_t, at::Tensor& d_td);

}  // namespace on_device
}  // namespace trainwright
