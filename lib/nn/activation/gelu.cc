#include "lib/nn/activation/gelu.h"

#include "lib/base/profile_scope.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/ops.h"

namespace trainwright {

void Gelu(const Numerics& numerics, GeluKind kind, const at::Tensor& in_nf, const at::Tensor& bias_f,
          at::Tensor& out_nf) {
  const ProfileScope scope("gelu", ProfilePart::kActivation);
  if (!out_nf.is_cpu()) {
    return ops::Gelu(in_nf, static_cast<int64_t>(kind), ops::IfDefined(bias_f), numerics.code(), out_nf);
  }
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
                  const at::Tensor& bias_f, at::Tensor& in_nf, at::Tensor& d_bias_f) {
  const ProfileScope scope("gelu_backward", ProfilePart::kActivation);
  if (!in_nf.is_cpu()) {
    return ops::GeluBackward(d_out_nf, static_cast<int64_t>(kind), ops::IfDefined(bias_f), numerics.code(),
                             in_nf, ops::IfDefined(d_bias_f));
  }
  const int64_t width = in_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* d_out = d_out_nf.const_data_ptr();
  const float* bias = cpu::DataOrNull(bias_f);
  void* in = in_nf.mutable_data_ptr();
  cpu::ParallelRows(in_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().gelu_backward(codec, kind, in, bias, d_out, width, begin, end);
  });
  if (d_bias_f.defined()) AccumulateBiasGradient(numerics, in_nf, d_bias_f);
}

}  // namespace trainwright
