/// Rounding a matrix to fp8 on a GPU, as in lib/nn/fp8_ops.h, launched on a stream. Memory and
/// determinism are those of kernels.h: the largest magnitude is the same in any order.
#pragma once

#include "lib/nn/cuda/kernels.h"
#include "lib/nn/linear/fp8_format.h"

namespace trainwright::cuda {

/// A stored matrix whose rows are contiguous.
struct StoredMatrix {
  Storage storage = Storage::kFp32;
  const void* data = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t stride = 0;  ///< elements from one row to the next
};

/// uint32 elements of scratch of Fp8ScaleOf.
inline constexpr int64_t kFp8Partials = 1024;

/// \param partial scratch [kFp8Partials]
/// \param scale_2 fp32: what the fp8 values are multiplied by, and what the matrix is multiplied by before
cudaError_t Fp8ScaleOf(const StoredMatrix& x, Fp8Format format, uint32_t* partial, float* scale_2,
                       cudaStream_t stream);

/// The codes of x times scale_2[1], with zeros up to the stride.
/// \param columns whether a line of codes is a column of x; else it is a row
/// \param codes [lines, code_stride]; code_stride a multiple of 16, at least x's columns, or its rows
cudaError_t Fp8Encode(const StoredMatrix& x, Fp8Format format, const float* scale_2, bool columns,
                      uint8_t* codes, int64_t code_stride, cudaStream_t stream);

}  // namespace trainwright::cuda
