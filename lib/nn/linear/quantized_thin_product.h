/// GEMMs of few rows in fp32 with weights in 8 or 4 bits, which are dequantised in registers: each is read
/// once. Torch-free.
///
/// Dot products are summed in fp32, in an order that depends on the depth and the processor alone: the bits
/// of a result do not depend on the other rows, their number, or the range of columns.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// Up to which they take less time than a GEMM with dequantised weights (measured at 32 and 33 rows:
/// scripts/compare/results/2026-11-28-quantised-generation.md).
inline constexpr int64_t kMostQuantizedRows = 32;

/// out [rows, n] = a [rows, depth] w^T.
struct ThinRows {
  int64_t rows = 0, depth = 0;
  const float* a = nullptr;  ///< contiguous
  float* out = nullptr;
  int64_t out_stride = 0;  ///< elements
};

/// Weights in the layout of int8_matrix.h.
struct Int8Product {
  ThinRows thin;
  const int8_t* codes = nullptr;  ///< [n, depth]
  const float* scales = nullptr;  ///< [n]
};

/// Weights in the layout of nf4.h.
struct Nf4Product {
  ThinRows thin;                   ///< of a depth that is a multiple of 64
  const uint8_t* codes = nullptr;  ///< [n, depth / 2]
  const uint8_t* scales = nullptr;
  const float* scale_magnitudes = nullptr;
  float mean = 0;
};

/// The columns [begin, end): each sum of inputs times codes, times the scale of its column.
void ComputeInt8Product(const Int8Product& product, int64_t begin, int64_t end);
/// The columns [begin, end), with the bits of ComputeThinProduct for fp32 and the dequantised weights.
void ComputeNf4Product(const Nf4Product& product, int64_t begin, int64_t end);

/// The same with the instructions of AVX2 where the processor has them, else by element.
void ComputeInt8ProductForAvx2(const Int8Product& product, int64_t begin, int64_t end);
void ComputeNf4ProductForAvx2(const Nf4Product& product, int64_t begin, int64_t end);

/// The same by plain loops, in another order of summation.
void ComputeInt8ProductByElement(const Int8Product& product, int64_t begin, int64_t end);
void ComputeNf4ProductByElement(const Nf4Product& product, int64_t begin, int64_t end);

/// out[i] = codes[i] * scale.
void DequantizeInt8(const int8_t* codes, int64_t size, float scale, float* out);

}  // namespace trainwright::cpu
