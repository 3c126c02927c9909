/// GEMMs with few rows, as decoding makes them: each weight is read once and multiplied with all
/// rows.
///
/// Their time is the time to read the weights. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

inline constexpr int64_t kMostThinRows = 16;

/// out [rows, n] = a [rows, depth] w^T with w [n, depth]. Rows of a matrix are contiguous.
struct ThinProduct {
  int64_t rows = 0;  ///< 1 to kMostThinRows
  int64_t depth = 0;
  bool bf16 = false;  ///< a and w; else fp32
  const void* a = nullptr;
  const void* w = nullptr;
  int64_t a_stride = 0, w_stride = 0;  ///< elements
  void* out = nullptr;
  int64_t out_stride = 0;
  bool out_bf16 = false;    ///< else fp32
  bool accumulate = false;  ///< out +=
};

/// Computes the columns [begin, end). Dot products are summed in fp32, in an order that depends on the depth
/// and the processor alone: the bits of a result do not depend on the other rows, their number, or the range.
void ComputeThinProduct(const ThinProduct& product, int64_t begin, int64_t end);

/// The same with the instructions of AVX2 where the processor has them, else by element.
void ComputeThinProductForAvx2(const ThinProduct& product, int64_t begin, int64_t end);

/// The same by plain loops, in another order of summation.
void ComputeThinProductByElement(const ThinProduct& product, int64_t begin, int64_t end);

}  // namespace trainwright::cpu
