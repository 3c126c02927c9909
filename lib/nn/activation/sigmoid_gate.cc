#include "lib/nn/activation/sigmoid_gate.h"

#include <ATen/ops/sigmoid.h>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

void CheckShapes(const at::Tensor& gate_nd, const at::Tensor& bias_d, const at::Tensor& value_nd,
                 const at::Tensor& out_nd) {
  TRAINWRIGHT_CHECK(gate_nd.is_contiguous() && value_nd.is_contiguous() && out_nd.is_contiguous());
  TRAINWRIGHT_CHECK(gate_nd.sizes() == value_nd.sizes() && gate_nd.sizes() == out_nd.sizes());
  TRAINWRIGHT_CHECK(!bias_d.defined() || bias_d.numel() == gate_nd.size(1));
}

/// sigmoid(gate + bias), fp32.
at::Tensor Openness(const Numerics& numerics, const at::Tensor& gate_nd, const at::Tensor& bias_d) {
  const at::Tensor gate = Loaded(numerics, gate_nd);
  return at::sigmoid(bias_d.defined() ? gate.add(bias_d) : gate);
}

}  // namespace

void SigmoidGate(const Numerics& numerics, const at::Tensor& gate_nd, const at::Tensor& bias_d,
                 const at::Tensor& value_nd, at::Tensor& out_nd) {
  const ProfileScope scope("sigmoid_gate", ProfilePart::kActivation);
  CheckShapes(gate_nd, bias_d, value_nd, out_nd);
  if (out_nd.is_meta()) return;  // nothing to compute
  if (!out_nd.is_cpu()) return on_device::SigmoidGate(numerics, gate_nd, bias_d, value_nd, out_nd);
  const int64_t width = gate_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void *gate = gate_nd.const_data_ptr(), *value = value_nd.const_data_ptr();
  const float* bias = cpu::DataOrNull(bias_d);
  void* out = out_nd.mutable_data_ptr();
  cpu::ParallelRows(gate_nd.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().sigmoid_gate(codec, gate, bias, value, width, out, begin, end);
  });
}

void SigmoidGateBackward(const Numerics& numerics, const at::Tensor& d_out_nd, const at::Tensor& bias_d,
                         at::Tensor& gate_nd, at::Tensor& value_nd) {
  const ProfileScope scope("sigmoid_gate_backward", ProfilePart::kActivation);
  CheckShapes(gate_nd, bias_d, value_nd, d_out_nd);
  if (gate_nd.is_meta()) return;
  if (!gate_nd.is_cpu()) return on_device::SigmoidGateBackward(numerics, d_out_nd, bias_d, gate_nd, value_nd);
  const int64_t width = gate_nd.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* d_out = d_out_nd.const_data_ptr();
  const float* bias = cpu::DataOrNull(bias_d);
  void *gate = gate_nd.mutable_data_ptr(), *value = value_nd.mutable_data_ptr();
  cpu::ParallelRows(gate_nd.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().sigmoid_gate_backward(codec, gate, bias, value, d_out, width, begin, end);
  });
}

namespace on_device {

void SigmoidGate(const Numerics& numerics, const at::Tensor& gate_nd, const at::Tensor& bias_d,
                 const at::Tensor& value_nd, at::Tensor& out_nd) {
  RoundInto(numerics, Openness(numerics, gate_nd, bias_d).mul(Loaded(numerics, value_nd)), out_nd);
}

void SigmoidGateBackward(const Numerics& numerics, const at::Tensor& d_out_nd, const at::Tensor& bias_d,
                         at::Tensor& gate_nd, at::Tensor& value_nd) {
  const at::Tensor d_out = Loaded(numerics, d_out_nd), open = Openness(numerics, gate_nd, bias_d);
  const at::Tensor d_open = d_out.mul(Loaded(numerics, value_nd));
  RoundInto(numerics, d_open.mul(open).mul(open.neg().add(1)), gate_nd);
  RoundInto(numerics, d_out.mul(open), value_nd);
}

}  // namespace on_device
}  // namespace trainwright
