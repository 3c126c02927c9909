/// The gated activation silu(gate) * up. \source Shazeer 2020, arXiv:2002.05202
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// \param gate_up storage type [N, 2F], gate in the first half of a row
/// \param out_nf [N, F]
void Swiglu(const Numerics& numerics, const at::Tensor& gate_up, at::Tensor& out_nf);
/// Overwrites gate_up with its gradient.
void SwigluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& gate_up);

}  // namespace trainwright
