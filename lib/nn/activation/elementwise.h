/// Rounding to the storage type, and reading what is stored.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// out = in rounded to reduced precision.
/// \param in fp32, contiguous
/// \param out storage type, same size; may be `in`
void RoundInto(const Numerics& numerics, const at::Tensor& in, at::Tensor& out);

/// What the CPU's kernels compute with when they load stored elements: rounded, in fp32.
/// \param stored storage type, contiguous; itself where nothing is to be done
at::Tensor Loaded(const Numerics& numerics, const at::Tensor& stored);

}  // namespace trainwright
