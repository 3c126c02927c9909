#include "lib/nn/position/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>

#include <algorithm>

#include "lib/base/profile_scope.h"
#include "lib/device/upload.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

at::Tensor RopeTable::Angles(const at::Tensor& positions, int64_t length) const {
  return at::outer(positions.to(at::kFloat), RopeFrequencies(rope_, head_dim_, length));
}

void RopeTable::Reserve(int64_t count) {
  if (count <= count_) return;
  count_ = std::max(count, 2 * count_);
  const at::Tensor angles = Angles(at::arange(count_, at::kLong), /*length=*/0);
  const double factor = RopeAttentionFactor(rope_);
  cosines_ = Upload(at::cos(angles).mul_(factor), device_);
  sines_ = Upload(at::sin(angles).mul_(factor), device_);
}

RopeRows RopeTable::RowsOf(const at::Tensor& positions_n, const at::Tensor& host_positions_n,
                           const std::vector<int32_t>& span_starts, int64_t bound) {
  const auto* positions = host_positions_n.const_data_ptr<int64_t>();
  int64_t longest = 0;
  for (size_t s = 0; s + 1 < span_starts.size(); ++s) {
    if (span_starts[s + 1] > span_starts[s])
      longest = std::max(longest, positions[span_starts[s + 1] - 1] + 1);
  }
  if (rope_.LengthClass(longest) == 0) {
    Reserve(std::max(longest, bound));
    return {cosines_, sines_, positions_n};
  }
  std::vector<at::Tensor> angles;
  for (size_t s = 0; s + 1 < span_starts.size(); ++s) {
    const int64_t begin = span_starts[s], end = span_starts[s + 1];
    if (begin == end) continue;
    angles.push_back(Angles(host_positions_n.narrow(0, begin, end - begin), positions[end - 1] + 1));
  }
  const at::Tensor all = at::cat(angles);
  const double factor = RopeAttentionFactor(rope_);
  return {Upload(at::cos(all).mul_(factor), device_), Upload(at::sin(all).mul_(factor), device_),
          at::arange(host_positions_n.numel(), positions_n.options())};
}

void ApplyRope(const Numerics& numerics, const RopeRows& rope, const AttentionShape& shape, bool backward,
               at::Tensor& qkv) {
  const ProfileScope scope("rope", ProfilePart::kPosition);
  if (!qkv.is_cpu()) {
    return ops::Rope(qkv, rope.rows_n, rope.cosines_pk, rope.sines_pk, shape.num_heads, shape.num_kv_heads,
                     numerics.code(), backward);
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const int64_t half = rope.cosines_pk.size(1);
  const int64_t* rows = rope.rows_n.const_data_ptr<int64_t>();
  const float *cosines = rope.cosines_pk.const_data_ptr<float>(),
              *sines = rope.sines_pk.const_data_ptr<float>();
  void* data = qkv.mutable_data_ptr();
  cpu::ParallelRows(qkv.size(0), 2 * shape.row(), [&](int64_t begin, int64_t end) {
    cpu::BestKernels().rope(codec, data, rows, cosines, sines, half, shape, backward ? -1.0f : 1.0f, begin,
                            end);
  });
}

}  // namespace trainwright
