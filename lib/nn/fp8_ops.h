/// The operators of torch's library "trainwright" (ops.h) that round matrices to fp8 and multiply them.
///
/// Current scaling: a matrix is multiplied by factor = M / a before it is rounded, in fp32 (rounded
/// once), where a is its largest magnitude at that moment and M the largest value of the format,
/// and what is computed of its fp8 values is multiplied by scale = 1 / factor. An a below 2^-110 counts as
/// 2^-110, so that both are normal numbers; of a matrix of zeros both are 1. Rounding is to nearest, ties
/// to even; what rounds above M becomes M. Of a matrix with an infinity or a NaN both numbers and all codes
/// are NaN, so that all that is computed of it is, and no check for finite numbers misses it. Nothing waits
/// for a device. \source current scaling of NVIDIA's Transformer Engine (Float8CurrentScaling);
/// Micikevicius et al. 2022, arXiv:2209.05433
///
/// The meta device does nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trainwright::ops {

/// \param x_rc stored, rows contiguous
/// \param format the value of Fp8Format
/// \param scale_2 fp32: scale and factor
void Fp8Scale(const at::Tensor& x_rc, int64_t format, int64_t precision, at::Tensor& scale_2);
/// \param columns whether a line of codes is a column of x, else it is a row
/// \param codes_lk uint8 [lines, depth], contiguous; a depth above x's a multiple of 16, filled up with zeros
void Fp8Encode(const at::Tensor& x_rc, const at::Tensor& scale_2, int64_t format, bool columns,
               int64_t precision, at::Tensor& codes_lk);
/// out = scale_a scale_b a b^T, or out += it: multiplied exactly, summed in fp32, scaled, rounded once.
/// \param a_mk, b_nk codes of one depth
/// \param candidate which of the library's kernels, as of product_ops.h
/// \param out_mn rows contiguous, fp32 or a stored type
/// \returns false where the device's library has no such kernel for it, and has written nothing
[[nodiscard]] bool Fp8Product(const at::Tensor& a_mk, const at::Tensor& a_scale_2, int64_t a_format,
                              const at::Tensor& b_nk, const at::Tensor& b_scale_2, int64_t b_format,
                              bool accumulate, int64_t candidate, at::Tensor& out_mn);

}  // namespace trainwright::ops
