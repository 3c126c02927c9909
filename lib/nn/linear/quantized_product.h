/// GEMMs on a CPU whose right operand is kept quantised: no copy of it in full precision is made.
///
/// Up to cpu::kMostQuantizedRows rows, as in decoding, read each weight once and dequantise it in registers.
/// Where the format has no kernel for that, up to cpu::kMostThinRows rows are multiplied with a few
/// dequantised rows of weights at a time, in the cache. Other GEMMs are computed part by part with
/// dequantised rows of weights, some megabytes of them, by Matmul.
///
/// Sums are in fp32, results rounded once. The bits of a result depend on its own row, column and depth
/// alone, not on threads; nor, up to kMostThinRows rows, on how many rows there are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/nn/linear/quantized_matrix.h"
#include "lib/nn/linear/quantized_thin_product.h"

namespace trainwright {

/// out = a W^T.
/// \param weights matrices one below the other, that make W
/// \param a_mk storage type
/// \param out_mn rows contiguous, storage type; unrounded under emulation
void MultiplyQuantized(const Numerics& numerics, const std::vector<const QuantizedMatrix*>& weights,
                       const at::Tensor& a_mk, at::Tensor& out_mn);

/// The frame of QuantizedMatrix::MultiplyThin for kernels that compute in fp32: widens `a`, divides the
/// columns over the threads, and rounds what they gave to the type of `out`.
/// \param compute gives the columns [begin, end)
/// \returns true
bool MultiplyThinInFp32(
    const at::Tensor& a_mk, at::Tensor& out_mn,
    const std::function<void(const cpu::ThinRows& rows, int64_t begin, int64_t end)>& compute);

}  // namespace trainwright
