/// GEMMs by the kernel that was measured to be the fastest for their shape: on a GPU torch's own or one of
/// those that cuBLASLt names (product_ops.h).
///
/// Numerics: Matmul's on a GPU, sums in fp32 that are rounded once; their order is the kernel's.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/linear/product_chooser.h"

namespace trainwright {

/// out = a b, or out += a b. As Matmul where there is no chooser, on a CPU, and where the library lacks the
/// kernel that was chosen for a neighbouring shape.
/// \param chooser of this process; its candidate 0 is torch's kernel, and c the library's candidate c - 1
void ChosenMatmul(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate,
                  ProductChooser* chooser);

}  // namespace trainwright
