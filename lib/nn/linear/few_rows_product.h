/// GEMMs with few rows by AVX-512, as decoding many sequences and short prompts make them: a weight is read
/// as it lies, once, where block_matmul.h would transpose all of it for a few rows.
///
/// Numerics: the transpose of the result is computed, with the terms and the partial sums of block_matmul.h
/// in its order, so that bits are the same.
#pragma once

#include "lib/nn/linear/block_matmul.h"

namespace trainwright::cpu {

/// Rows up to which it gains.
inline constexpr int64_t kMostFewRows = 512;

/// out = a b, or out += a b, on the threads of at::parallel_for. Takes scratch memory for the packed rows.
/// \param product of at most kPartDepth terms, which BlockMatmul takes
/// \returns false, and does nothing, when it has more rows or as few columns, an operand's other axis is
///     contiguous, pairs of bf16 would be split, or the processor multiplies by other instructions (AMX)
bool MultiplyFewRows(const BlockProduct& product);

}  // namespace trainwright::cpu
