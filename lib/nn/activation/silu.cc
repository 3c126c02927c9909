#include "lib/nn/activation/silu.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {

void Silu(const Numerics& numerics, const at::Tensor& in_nf, at::Tensor& out_nf) {
  const ProfileScope scope("silu", ProfilePart::kActivation);
  TRAINWRIGHT_CHECK(in_nf.is_contiguous() && out_nf.is_contiguous() && in_nf.sizes() == out_nf.sizes());
  if (out_nf.is_meta()) return;  // nothing to compute
  if (!out_nf.is_cpu()) return on_device::Silu(numerics, in_nf, out_nf);
  const int64_t width = in_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* in = in_nf.const_data_ptr();
  void* out = out_nf.mutable_data_ptr();
  cpu::ParallelRows(in_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().silu(codec, in, width, out, begin, end);
  });
}

void SiluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& in_nf) {
  const ProfileScope scope("silu_backward", ProfilePart::kActivation);
  TRAINWRIGHT_CHECK(in_nf.is_contiguous() && d_out_nf.is_contiguous() && in_nf.sizes() == d_out_nf.sizes());
  if (in_nf.is_meta()) return;
  if (!in_nf.is_cpu()) return on_device::SiluBackward(numerics, d_out_nf, in_nf);
  const int64_t width = in_nf.size(1);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* d_out = d_out_nf.const_data_ptr();
  void* in = in_nf.mutable_data_ptr();
  cpu::ParallelRows(in_nf.size(0), 8 * width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().silu_backward(codec, in, d_out, width, begin, end);
  });
}

namespace on_device {

void Silu(const Numerics& numerics, const at::Tensor& in_nf, at::Tensor& out_nf) {
  RoundInto(numerics, at::silu(Loaded(numerics, in_nf)), out_nf);
}

void SiluBackward(const Numerics& numerics, const at::Tensor& d_out_nf, at::Tensor& in_nf) {
  const at::Tensor x = Loaded(numerics, in_nf), sigmoid = at::sigmoid(x);
  const at::Tensor slope = sigmoid.add(x.mul(sigmoid).mul(sigmoid.neg().add(1)));
  RoundInto(numerics, Loaded(numerics, d_out_nf).mul(slope), in_nf);
}

}  // namespace on_device
}  // namespace trainwright
