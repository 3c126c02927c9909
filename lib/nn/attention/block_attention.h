/// Attention of one span under the shape's mask and window, in blocks that stay in the cache, with the
/// GEMMs by micro-kernels and a running softmax: the scores of a whole span never exist.
///
/// Numerics: scores, softmax and sums in fp32; probabilities and score gradients are rounded to the stored
/// type before they are multiplied on. A task's bits depend on its span and group alone.
/// \source Dao et al. 2022, arXiv:2205.14135 (FlashAttention); backward as its algorithm 4, by columns
#pragma once

#include "lib/nn/cpu/kernels.h"

namespace trainwright::cpu {

/// Whether this processor computes it: kFp32 and kBf16 with AVX-512, heads of a multiple of 32 elements.
bool HasBlockAttention(Codec codec, int64_t head_dim);

/// Arguments as of Kernels::attention and attention_backward; scratch is allocated inside, a few times the
/// span's keys.
void BlockAttention(Codec codec, const void* qkv, const AttentionShape& shape, const AttentionTask& task,
                    void* out_nhk, float* lse_hn);
void BlockAttentionBackward(Codec codec, const void* d_out_nhk, const void* qkv, const void* out_nhk,
                            const float* lse_hn, const AttentionShape& shape, const AttentionTask& task,
                            void* d_qkv);

}  // namespace trainwright::cpu
