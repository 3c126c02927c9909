/// The product of two vectors, as their similarity is defined.
#pragma once

#include <cstdint>

namespace trainwright {

/// Summed in double from the first element to the last: the same bits wherever it is computed.
/// \param a, b fp32 [columns]
inline double RowProduct(const float* a, const float* b, int64_t columns) {
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace trainwright
