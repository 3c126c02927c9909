/// Rounding to the storage type.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// out = in rounded to the short type.
/// \param in fp32, contiguous
/// \param out storage type, same size; may be `in`
void RoundInto(const Numerics& numerics, const at::Tensor& in, at::Tensor& out);

}  // namespace trainwright
