/// The activation silu(x) = x sigmoid(x). \source Elfwing, Uchibe and Doya 2017, arXiv:1702.03118
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// \param in_nf, out_nf storage type [N, F], contiguous; may be the same
void Silu(const Numerics& numerics, const at::Tensor& in_nf, at::Tensor& out_nf);
/// Overwrites in_nf with its gradient.
void SiluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& in_nf);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too.
namespace on_device {

void Silu(const Numerics& numerics, const at::Tensor& in_nf, at::Tensor& out_nf);
void SiluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& in_nf);

}  // namespace on_device
}  // namespace trainwright
