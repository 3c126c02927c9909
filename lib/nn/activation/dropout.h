/// Dropout whose pattern is a pure function of a key, the number of an element's row and its column.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/precision.h"

namespace trainwright {

/// out = x / (1 - probability) where an element is kept, else 0; rounded to the storage type.
///
/// Element (row, column) is dropped when its 32 bits, a half of Rng::Bits of the counter
/// row * ceil(width / 2) + column / 2 modulo 2^64 (the low one for even columns), are below
/// probability * 2^32.
/// \param key of an Rng
/// \param rows_n int64 [N] where x is: the number of each row
/// \param x, out storage type [N, width], rows contiguous; may be the same
void Dropout(const Numerics& numerics, uint64_t key, const at::Tensor& rows_n, double probability,
             const at::Tensor& x, at::Tensor& out);
/// Bits below it drop an element.
inline uint32_t DropoutThreshold(double probability) {
  return static_cast<uint32_t>(probability * 0x1p32);
}
/// What an element that is kept is multiplied by.
inline float DropoutScale(double probability) {
  return static_cast<float>(1.0 / (1.0 - probability));
}

}  // namespace trainwright
