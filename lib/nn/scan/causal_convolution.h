/// A depthwise causal convolution with silu after it, and its backward pass: in each span of a packed batch
/// and for each channel
///   out_t = scale silu(p_t),     p_t = sum_j kernel_j x_{t-j},     j = 0 .. T - 1,
/// where the P = T - 1 rows before a span's first are those that are given, or zeros. Tap 0 is the row's own.
///
/// Shape legend: N rows of a micro-batch, S spans, K channels, Z = 2 K (real parts of a row, then its
/// imaginary parts), T taps, P = T - 1 rows before a span, the last of them next to its first row.
///
/// Backward, with d_p = d_out scale silu'(p) and p computed again:
///   d x_t = sum_j kernel_j d_p_{t+j}     over the rows of the span,     d kernel_j = sum_t d_p_t x_{t-j},
///   d scale = sum_t (d_out_t silu(p_t) of the real part + of the imaginary part).
/// \source Gu and Dao 2023, arXiv:2312.00752 (the convolution before the scan)
///
/// Numerics: p and d_p are fp32; x, out and their gradients have the storage type. Gradients of the kernel
/// and of the scale are added up in fp32 over blocks of rows that depend on N alone.
///
/// Determinism: the bits of a row depend on the T rows up to it (backward: on T - 1 rows to either side), and
/// not on threads, nor on the other spans.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/attention/span_table.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// \param x_nz storage type [N, Z], contiguous
/// \param kernel_zt fp32 or storage type [Z, T], T at least 1
/// \param scale_k fp32 [K], of both parts; undefined: 1
/// \param before_spz fp32 [S, P, Z], contiguous: inputs before the spans; undefined: zeros
/// \param out_nz storage type [N, Z], contiguous, other memory than x_nz; rounded
/// \param last_spz fp32 [S, P, Z], contiguous: the P inputs that end with a span's last row, which a span
///     that goes on has before it; undefined: not wanted. May be before_spz
void CausalConvolution(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                       const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz,
                       at::Tensor& out_nz, at::Tensor& last_spz);

/// Undefined: not wanted.
struct ConvolutionGradients {
  at::Tensor x_nz;        ///< storage type [N, Z], contiguous, other memory than d_out_nz; always wanted
  at::Tensor kernel_zt;   ///< fp32 [Z, T], contiguous; added to
  at::Tensor scale_k;     ///< fp64 [K], contiguous; written
  at::Tensor before_spz;  ///< fp32 [S, P, Z], contiguous; written
};

/// Arguments as of the forward pass, of which last_spz is taken to have no gradient.
/// \param d_out_nz storage type [N, Z], contiguous
void CausalConvolutionBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                               const at::Tensor& scale_k, const SpanTable& spans,
                               const at::Tensor& before_spz, const at::Tensor& d_out_nz,
                               ConvolutionGradients& gradients);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too. Sums
/// over rows are torch's.
namespace on_device {

void CausalConvolution(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                       const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz,
                       at::Tensor& out_nz, at::Tensor& last_spz);
void CausalConvolutionBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                               const at::Tensor& scale_k, const SpanTable& spans,
                               const at::Tensor& before_spz, const at::Tensor& d_out_nz,
                               ConvolutionGradients& gradients);

}  // namespace on_device
}  // namespace trainwright
