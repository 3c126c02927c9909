#include "lib/nn/activation/elementwise.h"

#include <ATen/ops/empty_like.h>

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void RoundInto(const Numerics& numerics, const at::Tensor& in, at::Tensor& out) {
  if (!out.is_cpu()) return ops::RoundInto(in, numerics.code(), out);
  const float* from = in.const_data_ptr<float>();
  void* to = out.mutable_data_ptr();
  const cpu::Codec codec = cpu::CodecOf(numerics);
  cpu::ParallelRows(in.numel(), 1, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().round(codec, from, to, begin, end);
  });
}

at::Tensor Loaded(const Numerics& numerics, const at::Tensor& stored) {
  if (!numerics.emulated()) return stored.to(at::kFloat);
  at::Tensor rounded = at::empty_like(stored);
  RoundInto(numerics, stored, rounded);
  return rounded;
}

}  // namespace trainwright
