/// Dropout whose pattern is a pure function of a key and an element's row and column.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/precision.h"

namespace trainwright {

/// out = x / (1 - probability) where an element is kept, else 0; rounded to the storage type.
///
/// Element (row, column) is dropped when its 32 bits, a half of Rng::Bits of the counter
/// row * ceil(width / 2) + column / 2 (the low one for even columns), are below probability * 2^32.
/// \param key of an Rng
/// \param first_row number of x's first row
/// \param x, out storage type [N, width], rows contiguous; may be the same
void Dropout(const Numerics& numerics, uint64_t key, int64_t first_row, double probability,
             const at::Tensor& x, at::Tensor& out);

}  // namespace trainwright
