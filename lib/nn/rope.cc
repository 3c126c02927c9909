#include "lib/nn/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>

#include <algorithm>

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void RopeTable::Reserve(int64_t count) {
  if (count <= count_) return;
  count_ = std::max(count, 2 * count_);
  const at::Tensor exponents = at::arange(0, head_dim_, 2, at::kLong).to(at::kFloat).div_(head_dim_);
  const at::Tensor frequencies = at::pow(theta_, exponents).reciprocal_();
  const at::Tensor angles = at::outer(at::arange(count_, at::kLong).to(at::kFloat), frequencies);
  cosines_ = at::cos(angles).to(device_);
  sines_ = at::sin(angles).to(device_);
}

void ApplyRope(const Numerics& numerics, const RopeTable& table, const AttentionShape& shape,
               const at::Tensor& positions_n, bool backward, at::Tensor& qkv) {
  ApplyRope(numerics, table.cosines(), table.sines(), shape, positions_n, backward, qkv);
}

void ApplyRope(const Numerics& numerics, const at::Tensor& cosines_pk, const at::Tensor& sines_pk,
               const AttentionShape& shape, const at::Tensor& positions_n, bool backward, at::Tensor& qkv) {
  if (!qkv.is_cpu()) {
    return ops::Rope(qkv, positions_n, cosines_pk, sines_pk, shape.num_heads, shape.num_kv_heads,
                     numerics.code(), backward);
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const int64_t* positions = positions_n.const_data_ptr<int64_t>();
  const float *cosines = cosines_pk.const_data_ptr<float>(), *sines = sines_pk.const_data_ptr<float>();
  void* data = qkv.mutable_data_ptr();
  cpu::ParallelRows(qkv.size(0), 2 * shape.row(), [&](int64_t begin, int64_t end) {
    cpu::BestKernels().rope(codec, data, positions, cosines, sines, shape, backward ? -1.0f : 1.0f, begin,
                            end);
  });
}

}  // namespace trainwright
