/// Rotary position embedding in Hugging Face's layout: of the elements of a head that turn, a pair is one of
/// the first half and one of the second. \source Su et al. 2021, arXiv:2104.09864; a part of each head alone:
/// Black et al. 2022, arXiv:2204.06745 (GPT-NeoX)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/position/rope_scaling.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// Cosines and sines, times the attention factor, and which row of them each token takes.
struct RopeRows {
  at::Tensor cosines_pk, sines_pk;  ///< fp32 [rows, pairs] on the model's device
  at::Tensor rows_n;                ///< int64 [N], on the model's device
};

/// The cosines and sines of positions: the angles are the fp32 outer products that transformers computes, on
/// every device (they are made on the CPU). Grows when a larger position is asked for. Not thread-safe.
///
/// Where frequencies depend on the length of a sequence, each span has those of its own length: a document
/// has the same angles packed as alone. (transformers takes the longest sequence that it has seen for all.)
class RopeTable {
 public:
  RopeTable(const RopeParameters& rope, int64_t head_dim, at::Device device = at::kCPU)
      : rope_(rope), head_dim_(head_dim), device_(device) {}
  const RopeParameters& rope() const { return rope_; }
  /// \param positions_n int64 [N] where the model computes;
  /// \param host_positions_n the same on the host
  /// \param span_starts [S+1]; positions rise within a span
  /// \param bound how many positions the table has rows for at least
  RopeRows RowsOf(const at::Tensor& positions_n, const at::Tensor& host_positions_n,
                  const std::vector<int32_t>& span_starts, int64_t bound = 0);
  /// Of the rows that there are.
  int64_t bytes() const { return cosines_.defined() ? 2 * static_cast<int64_t>(cosines_.nbytes()) : 0; }

 private:
  void Reserve(int64_t count);
  /// fp32 [count of positions, pairs].
  at::Tensor Angles(const at::Tensor& positions, int64_t length) const;

  RopeParameters rope_;
  int64_t head_dim_, count_ = 0;
  at::Device device_;
  at::Tensor cosines_, sines_;
};

/// Rotates query and key heads of packed projections qkv [N, (H+2G) K] in place, and rounds what does not
/// turn.
/// \param backward turns the other way: the transposed rotation, for gradients
void ApplyRope(const Numerics& numerics, const RopeRows& rope, const AttentionShape& shape, bool backward,
               at::Tensor& qkv);

}  // namespace trainwright
