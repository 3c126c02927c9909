#include "lib/nn/activation/gelu.h"

#include "lib/nn/cpu/parallel.h"

namespace trainwright {

void Gelu(const Numerics& numerics, GeluKind kind, const at::Tensor& in_nf, const at::Tensor& bias_f,
          at::Tensor& out_nf) {
  if (out_nf.is_meta()) return;  // nothing to compute
  const int64_t width = in_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* in = in_nf.const_data_ptr();
  const float* bias = cpu::DataOrNull(bias_f);
  void* out = out_nf.mutable_data_ptr();
  cpu::ParallelRows(in_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().gelu(codec, kind, in, bias, width, out, begin, end);
  });
}

void GeluBackward(const Numerics& numerics, GeluKind kind, const at::Tensor& d_out_nf,
                  const at::Tensor& bias_f, at::Tensor& in_nf) {
  if (in_nf.is_meta()) return;
  const int64_t width = in_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* d_out = d_out_nf.const_data_ptr();
  const float* bias = cpu::DataOrNull(bias_f);
  void* in = in_nf.mutable_data_ptr();
  cpu::ParallelRows(in_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().gelu_backward(codec, kind, in, bias, d_out, width, begin, end);
  });
}

}  // namespace trainwright
