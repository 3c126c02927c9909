/// Packed attention by torch's kernels for GPUs; all of it is torch's operators, so nothing here needs nvcc.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/attention_backend.h"
#include "lib/nn/rope.h"
#include "lib/nn/span_table.h"

namespace trainwright {

/// As PackedAttention. \param backend resolved: not kAuto \param qkv any device that has the backend
void TorchAttention(AttentionBackend backend, const AttentionShape& shape, const at::Tensor& qkv,
                    const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn);

/// As PackedAttentionBackward, from what the same backend's forward pass left. Flash's sums have a fixed
/// order only under at::globalContext().deterministicAlgorithms().
void TorchAttentionBackward(AttentionBackend backend, const AttentionShape& shape,
                            const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                            const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv);

}  // namespace trainwright
