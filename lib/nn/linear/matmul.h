/// GEMMs: all of the model's go through here.
///
/// On a CPU with AVX-512 a GEMM is cut into blocks that stay in the cache. In fp32 they are computed by tiles
/// of our own, which fetch the operand that comes next and write each result once (block_tile.h): LibTorch's
/// own at::mm uses MKL for fp32, which runs at 40 % of the speed on processors that are not Intel's. In bf16,
/// where at::mm has no sums in fp32, by oneDNN's micro-kernels (brgemm), which LibTorch carries, or by our
/// tiles where an operand is used but once or twice, or is stored as its transpose (few_rows_product.h); with
/// the same bits. Up to kMostThinRows rows times a transposed weight are summed weight
/// by weight (thin_product.h), on every CPU. Otherwise, and for small GEMMs, at::mm.
///
/// Numerics: fp32 sums over blocks of kBlockDepth terms, in order; bf16 inputs are multiplied exactly and
/// summed in fp32 (by dot products of pairs, or where those are slower than fp32, one by one after they were
/// widened: gemm_kernels.h); a bf16 result is rounded once. The bits of a result depend on its own row,
/// column and depth alone, not on threads; nor, up to kMostThinRows rows, on how many rows there are. Those
/// of a library, to which gemm_kernels.h may leave fp32 altogether, may depend on both.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// out = a b, or out += a b.
/// \param a_mk, b_kn of one type, fp32 or bf16; any view with a unit stride, such as weight.t()
/// \param out_mn rows contiguous; the inputs' type, or fp32. Must not overlap the inputs.
void Matmul(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate = false);
/// out = scale a b on a device that is not the CPU, whose GEMMs scale their fp32 sums before they round them.
/// \param out_mn of the inputs' type
void ScaledMatmul(const at::Tensor& a_mk, const at::Tensor& b_kn, double scale, at::Tensor& out_mn);

}  // namespace trainwright
