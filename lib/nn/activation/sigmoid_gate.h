/// A gate on an update, with the bias of the linear layer that the gate comes from:
///   out = sigmoid(gate + bias) value.
/// The bias's gradient is that of the linear layer: the column sums of the gate's gradient, which
/// Linear::Backward adds up.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// \param gate_nd, value_nd, out_nd storage type [N, D], contiguous; out_nd may be one of the others
/// \param bias_d fp32, or undefined: none
void SigmoidGate(const Numerics& numerics, const at::Tensor& gate_nd, const at::Tensor& bias_d,
                 const at::Tensor& value_nd, at::Tensor& out_nd);
/// Overwrites gate_nd and value_nd with their gradients, rounded.
void SigmoidGateBackward(const Numerics& numerics, const at::Tensor& d_out_nd, const at::Tensor& bias_d,
                         at::Tensor& gate_nd, at::Tensor& value_nd);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too.
namespace on_device {

void SigmoidGate(const Numerics& numerics, const at::Tensor& gate_nd, const at::Tensor& bias_d,
                 const at::Tensor& value_nd, at::Tensor& out_nd);
void SigmoidGateBackward(const Numerics& numerics, const at::Tensor& d_out_nd, const at::Tensor& bias_d,
                         at::Tensor& gate_nd, at::Tensor& value_nd);

}  // namespace on_device
}  // namespace trainwright
