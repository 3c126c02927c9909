/// What enters a diagonal scan, scaled by a number a channel: gamma of eigen_decay.h, where no convolution
/// takes it along.
///
/// N rows, K channels, Z = 2 K: the real parts of a row, then its imaginary parts. Rows have the storage
/// type. A row's bits depend on that row alone; the gradient of the scale is added up in fp32 over blocks of
/// rows that depend on N alone, and over the blocks in fp64.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// out_nz = scale_k x_nz in both parts.
/// \param x_nz storage type [N, Z], contiguous
/// \param scale_k fp32 [K], contiguous
/// \param out_nz storage type [N, Z], contiguous; rounded; may be x_nz
void ChannelScale(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                  at::Tensor& out_nz);

/// \param d_out_nz storage type [N, Z], contiguous
/// \param d_x_nz storage type [N, Z], contiguous; written and rounded; may be d_out_nz
/// \param d_scale_k fp64 [K], contiguous; written; undefined: not wanted
void ChannelScaleBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                          const at::Tensor& d_out_nz, at::Tensor& d_x_nz, at::Tensor& d_scale_k);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too.
namespace on_device {

void ChannelScale(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                  at::Tensor& out_nz);
void ChannelScaleBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& scale_k,
                          const at::Tensor& d_out_nz, at::Tensor& d_x_nz, at::Tensor& d_scale_k);

}  // namespace on_device
}  // namespace trainwright
