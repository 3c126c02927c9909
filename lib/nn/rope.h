/// Rotary position embedding in Hugging Face's layout: element i of a head turns with element i + K/2.
/// \source Su et al. 2021, arXiv:2104.09864
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/precision.h"

namespace trainwright {

using AttentionShape = cpu::AttentionShape;

/// Cosines and sines of every position, fp32 [positions, K/2]: the angles are the fp32 products that
/// transformers computes, on every device (they are made on the CPU). Grows when a larger position is asked
/// for. Not thread-safe.
class RopeTable {
 public:
  RopeTable(double theta, int64_t head_dim, at::Device device = at::kCPU)
      : theta_(theta), head_dim_(head_dim), device_(device) {}
  /// Makes positions [0, count) available.
  void Reserve(int64_t count);
  const at::Tensor& cosines() const { return cosines_; }
  const at::Tensor& sines() const { return sines_; }

 private:
  double theta_;
  int64_t head_dim_, count_ = 0;
  at::Device device_;
  at::Tensor cosines_, sines_;
};

/// Rotates query and key heads of packed projections qkv [N, (H+2G) K] in place, and rounds the value heads.
/// \param backward turns the other way: the transposed rotation, for gradients
/// \param positions_n int64 [N], each below what the table reserved
void ApplyRope(const Numerics& numerics, const RopeTable& table, const AttentionShape& shape,
               const at::Tensor& positions_n, bool backward, at::Tensor& qkv);
/// The same with the table's two halves, fp32 [positions, K/2] on qkv's device.
void ApplyRope(const Numerics& numerics, const at::Tensor& cosines_pk, const at::Tensor& sines_pk,
               const AttentionShape& shape, const at::Tensor& positions_n, bool backward, at::Tensor& qkv);

}  // namespace trainwright
