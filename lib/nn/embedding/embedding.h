/// Look-up of token vectors, and its deterministic backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"

namespace trainwright {

/// out_nd = table_vd[tokens_n], rounded where out_nd is short and the table is not.
/// \param table_vd fp32, or short of a frozen table
/// \param out_nd fp32, bf16, or the table's type
/// \param tokens_n int64, each in [0, V)
void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd);
/// The same into a residual stream, rounded as numerics.residual says also where bf16 is emulated.
void Embed(const Numerics& numerics, const at::Tensor& table_vd, const at::Tensor& tokens_n,
           at::Tensor& stream_nd);

/// out_nd += table_vd[indices_n] (learned positions); sums are made in fp32, and rounded once where out_nd is
/// bf16.
/// \param indices_n int64, each in [0, V)
void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd);
/// As of Embed.
void AddEmbedding(const Numerics& numerics, const at::Tensor& table_vd, const at::Tensor& indices_n,
                  at::Tensor& stream_nd);

/// d_table_vd[tokens_n] += d_out_nd, in the order of the rows whatever the thread count.
/// \param d_out_nd fp32 or bf16
/// \param d_table_vd fp32
void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd);

}  // namespace trainwright
