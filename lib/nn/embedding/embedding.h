/// Look-up of token vectors, and its deterministic backward pass.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// out_nd = table_vd[tokens_n].
/// \param table_vd fp32, or short of a frozen table
/// \param out_nd fp32, or the table's type
/// \param tokens_n int64, each in [0, V)
void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd);

/// out_nd += table_vd[indices_n] (learned positions).
/// \param indices_n int64, each in [0, V)
void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd);

/// d_table_vd[tokens_n] += d_out_nd, in the order of the rows whatever the thread count.
void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd);

}  // namespace trainwright
