/// Packed attention by torch's kernels for GPUs; all of it is torch's operators, so nothing here needs nvcc.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/attention/span_table.h"
#include "lib/nn/position/rope.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// Makes of what is undefined new tensors of the sizes of PackedAttention.
void EnsureAttentionResult(const AttentionShape& shape, const at::Tensor& qkv, at::Tensor& out_nhk,
                           at::Tensor& lse_hn);

/// As PackedAttention. A span that is longer than the shape's window is computed by math under the backends
/// that know no windows, efficient and cudnn; cuDNN is not asked about spans of one token, whose backward
/// pass it does not have.
/// \param backend resolved: not kAuto
/// \param qkv any device that has the backend
void TorchAttention(AttentionBackend backend, const AttentionShape& shape, const at::Tensor& qkv,
                    const SpanTable& spans, at::Tensor& out_nhk, at::Tensor& lse_hn);

/// As PackedAttentionBackward, from what the same backend's forward pass left. Flash's sums have a fixed
/// order only under at::globalContext().deterministicAlgorithms().
void TorchAttentionBackward(AttentionBackend backend, const Numerics& numerics, const AttentionShape& shape,
                            const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                            const at::Tensor& lse_hn, const SpanTable& spans, at::Tensor& d_qkv,
                            const RopeRows* rope);

/// Memory that the passes take at most besides their arguments and results: gradients that torch's kernels
/// return, which are copied, and their scratch. An estimate: of flash what FlashAttention 2 allocates in its
/// backward pass (mha_varlen_bwd), of the others the backward pass of the longest span without the workspaces
/// of the libraries, which only a GPU shows.
/// \param backend resolved; kAuto, our own on a CPU: 0
/// \param dtype of qkv
/// \param multiprocessors of the GPU under deterministic algorithms, where flash has sums of the queries'
///     gradients for each share of these; 0: in any order
int64_t AttentionWorkspaceBytes(AttentionBackend backend, const AttentionShape& shape, at::ScalarType dtype,
                                const SpanTable& spans, int64_t multiprocessors = 0);

}  // namespace trainwright
