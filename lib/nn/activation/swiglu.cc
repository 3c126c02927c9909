#include "lib/nn/activation/swiglu.h"

#include "lib/base/profile_scope.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void Swiglu(const Numerics& numerics, const at::Tensor& gate_up, at::Tensor& out_nf) {
  const ProfileScope scope("swiglu", ProfilePart::kActivation);
  if (!gate_up.is_cpu()) return ops::Swiglu(gate_up, numerics.code(), out_nf);
  const int64_t width = out_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* in = gate_up.const_data_ptr();
  void* out = out_nf.mutable_data_ptr();
  cpu::ParallelRows(out_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().swiglu(codec, in, width, out, begin, end);
  });
}

void SwigluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& gate_up) {
  const ProfileScope scope("swiglu_backward", ProfilePart::kActivation);
  if (!gate_up.is_cpu()) return ops::SwigluBackward(d_out_nf, numerics.code(), gate_up);
  const int64_t width = d_out_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* d_out = d_out_nf.const_data_ptr();
  void* data = gate_up.mutable_data_ptr();
  cpu::ParallelRows(d_out_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().swiglu_backward(codec, data, d_out, width, begin, end);
  });
}

}  // namespace trainwright
